// `muster sim report`: several policies on a public trace, as a page with tables and plots.
//
// The runs are those of `sim compare`. The folder is looked at before anything is played, so that
// nobody waits for a report that cannot be written; it is made and written when all runs are there.
#pragma once

#include "cli/sim_play.h"
#include "cli/verbs.h"

namespace muster::cli {

int ReportSim(SimWords words, const Common& common);

}  // namespace muster::cli

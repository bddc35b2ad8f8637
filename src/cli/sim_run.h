// `muster sim run` and `muster sim compare`: policies on public traces, without a cluster.
//
// A row a policy for people, with the mean of the seeds; a document with every run for programs.
// What is printed is the same for the same files, policies and seeds, but for the times that a run
// took.
#pragma once

#include "cli/session.h"
#include "cli/sim_play.h"

namespace muster::cli {

int RunSim(SimWords words, Output output);
int CompareSim(SimWords words, Output output);

}  // namespace muster::cli

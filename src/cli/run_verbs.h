// RunVerbs: `muster runs`, which shows what jobs reported of their training.
//
// A list, one curve as text, several side by side with what their files differ in, and files for
// other tools. Everything is drawn and written here; the daemon only hands over points.
#pragma once

#include "cli/verbs.h"

namespace muster::cli {

void AddRunVerbs(Verbs& verbs);

}  // namespace muster::cli

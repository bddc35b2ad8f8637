// The verbs of `muster policy`: how the scheduler decides, shown, applied and taken back.
//
// A change is tried first and what it changes is said; it is made only if nobody else was quicker
// in between. Files are checked here, so that mistakes have the name of the file in front.
#pragma once

#include "cli/verbs.h"

namespace muster::cli {

void AddPolicyVerbs(Verbs& verbs);  // show, list, apply, undo, diff

}  // namespace muster::cli

// `muster sim scenarios PATH...`: runs scenario files on the engine and reports what differs.
//
// Takes files and folders: JSON files in the neutral schema (scenarios and fair-share cases) and
// `.case` files of our own, which run with their rule and without it (docs/scenarios.md). Prints
// each failure with its differences, then `N passed, M failed`; with JSON output everything that
// others need to judge for themselves. A file that cannot be run is reported and the others are
// run. Exit status 1 on a failure; 3, 4 or 5 when a path does not exist, may not be read or is
// wrong.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace muster::cli {

int RunScenarios(const std::vector<std::string>& paths, Output output);

}  // namespace muster::cli

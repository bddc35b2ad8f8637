// Doctor: one line for each thing that is often wrong, with what to do about it.
//
// Looks and changes nothing. `fail` is what keeps jobs from running, and ends with status 1;
// `warn` is what somebody should know. What the caller may not see is left out and said so.
#pragma once

#include <string>

#include "cli/session.h"

namespace muster::cli {

int Doctor(Session& session, const std::string& version);

// What limits need and this line of cgroup.controllers does not name: "cpu", "cpu and memory", "".
std::string ControllersMissing(const std::string& named);

}  // namespace muster::cli

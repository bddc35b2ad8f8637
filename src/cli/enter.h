// Enter: a worker's terminal on this one.
//
// Every key goes to the program but Ctrl-], which leaves it running. Ends with the program's own
// status, 128 and the signal where one ended it, or 0 when it was left.
#pragma once

#include <cstdint>
#include <string>

#include "cli/session.h"

namespace muster::cli {

int Attach(Session& session, const std::string& job, std::int64_t worker);

}  // namespace muster::cli

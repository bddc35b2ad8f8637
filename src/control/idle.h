// Idle: when a job that nobody uses is warned, and what it is told.
//
// The warning takes the last tenth of the idle limit, at least a minute and at most ten, but never
// more than half of it. A job is released when the warning has run out and it is still idle, so
// nothing is ever released that was not warned.
#pragma once

#include <cstdint>
#include <string>

#include "state/records.h"

namespace muster::control {

std::int64_t IdleWarningMs(std::int64_t limit_ms);

// "idle: released in 5m unless it is used"; the job must have been warned.
std::string IdleText(const state::JobRecord& job, std::int64_t now_ms);

}  // namespace muster::control

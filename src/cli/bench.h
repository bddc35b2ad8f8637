// `muster bench engine --shape NAME`: what the engine's decisions cost on this machine.
//
// Prints one line for a person or one JSON object with every sample, so that others can compute
// their own figures. Real measurements of this build; nothing is cached or assumed.
#pragma once

#include <cstdint>
#include <string>

#include "cli/session.h"

namespace muster::cli {

int RunBenchEngine(const std::string& shape, std::int64_t nodes, int runs, Output output);

}  // namespace muster::cli

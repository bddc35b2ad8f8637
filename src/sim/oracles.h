// Oracles: policies that know how long jobs take.
//
// No scheduler that could be built reaches what they reach, so wherever results are shown they say
// so, and what is best is sought among the others.
#pragma once

#include <string>
#include <string_view>

namespace muster::sim {

bool IsOracle(std::string_view policy);
// A policy as it is shown: "srtf (oracle)"; one whose name says it already stays as it is.
std::string ShownName(std::string_view policy);
bool NamesOracle(std::string_view shown);

}  // namespace muster::sim

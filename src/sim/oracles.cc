#include "sim/oracles.h"

#include <algorithm>
#include <array>

namespace muster::sim {

std::string ShownName(std::string_view policy) {
  constexpr std::array<std::string_view, 2> kOracles = {"gavel-makespan", "srtf"};
  const bool oracle = std::ranges::find(kOracles, policy) != kOracles.end();
  return std::string(policy) + (oracle ? " (oracle)" : "");
}

bool IsOracle(std::string_view policy) { return NamesOracle(ShownName(policy)); }

bool NamesOracle(std::string_view shown) {
  return shown.ends_with("-oracle") || shown.ends_with("(oracle)");
}

}  // namespace muster::sim

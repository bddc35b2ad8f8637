// RandomFit: any node that fits, and there any GPU that fits, each with the same chance.
//
// The floor of the openb comparison. Looks at every node for every pod.
#pragma once

#include "sim/openb/policy.h"

namespace muster::sim {

class RandomFit final : public PlacementPolicy {
 public:
  explicit RandomFit(Random& random) : random_(random) {}
  std::optional<PodPlace> Choose(std::span<const NodeState> nodes, std::span<const PodShape> shapes,
                                 std::uint32_t shape) override;

 private:
  Random& random_;
};

}  // namespace muster::sim

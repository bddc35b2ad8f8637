// Packing: GPUs in use before idle ones, nodes in use before idle ones.
//
// A pod that fits on GPUs in use scores at least 50, the less room they have the more; one that
// opens GPUs of a node in use 33 to 50, the fewer the more; an idle node scores at most 33, small
// nodes first. Pods without GPU see no difference. A share takes the GPU with the least room.
#pragma once

#include "sim/openb/policy.h"

namespace muster::sim {

class Packing final : public ScoredPolicy {
 protected:
  Judgement Judge(const NodeState& node, const PodShape& pod, double value) const override;
};

}  // namespace muster::sim

// DotProduct: the node whose free cores and GPU are least like what the pod asks for.
//
// The published baseline turns Tetris's alignment around: the smaller the product of free and asked
// amounts, the higher the score, which sends pods to nodes that are nearly full. Scores are whole
// hundredths; a share takes the GPU with the least room.
#pragma once

#include "sim/openb/policy.h"

namespace muster::sim {

class DotProduct final : public ScoredPolicy {
 protected:
  Judgement Judge(const NodeState& node, const PodShape& pod, double value) const override;
};

}  // namespace muster::sim

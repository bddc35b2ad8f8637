// Clustering: pods of one kind (a share, one GPU, two, ...) together on nodes.
//
// Best is a node that serves this kind only, then one that serves it among others, then one that
// serves none, then any; among equals the fuller one, by 25 steps of the largest node. Pods without
// GPU see no difference. A share takes the GPU with the least room.
#pragma once

#include "sim/openb/policy.h"

namespace muster::sim {

class Clustering final : public ScoredPolicy {
 protected:
  Judgement Judge(const NodeState& node, const PodShape& pod, double value) const override;
};

}  // namespace muster::sim

// BestFit: the node that has least left afterwards, cores and GPU counted alike.
//
// Each resource is measured against the largest node of the cluster the rule was published for;
// scores are whole hundredths. A share takes the GPU with the least room.
#pragma once

#include "sim/openb/policy.h"

namespace muster::sim {

class BestFit final : public ScoredPolicy {
 protected:
  Judgement Judge(const NodeState& node, const PodShape& pod, double value) const override;
};

}  // namespace muster::sim

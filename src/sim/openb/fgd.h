// Fgd: the node, and for a share the GPU, where fragmentation grows least.
//
// Fragmentation Gradient Descent (Weng et al., ATC '23): the change of TargetWorkload's
// fragmentation in GPUs, squeezed by a sigmoid into whole scores from 0 to 100. The coarse scores
// are part of the rule: exact ones pack worse, because the first of equals fills up.
#pragma once

#include "sim/openb/policy.h"

namespace muster::sim {

class Fgd final : public ScoredPolicy {
 public:
  explicit Fgd(const TargetWorkload& target) : target_(target) {}

 protected:
  double Value(const NodeState& node) const override { return target_.Fragmentation(node); }
  Judgement Judge(const NodeState& node, const PodShape& pod, double before) const override;

 private:
  const TargetWorkload& target_;
};

}  // namespace muster::sim

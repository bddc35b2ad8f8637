// PolluxSrtf: shortest remaining time first, with the GPUs that jobs asked for, and preemption.
//
// An oracle: it knows the true step times and how many steps are left, so it stands for no
// scheduler that could be built. Of equally long ones who came first.
#pragma once

#include "sim/pollux/policy.h"

namespace muster::sim {

class PolluxSrtf : public AllocationPolicy {
 public:
  bool adaptive() const override { return false; }
  Allocation Decide(const Scene& scene) override;
};

}  // namespace muster::sim

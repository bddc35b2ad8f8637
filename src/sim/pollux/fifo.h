// PolluxFifo: jobs in the order in which they came, with the GPUs that they asked for.
//
// Nobody passes the first one that does not fit, and nobody is stopped: the plainest rule there is,
// and what a cluster without a scheduler comes to.
#pragma once

#include "sim/pollux/policy.h"

namespace muster::sim {

class PolluxFifo : public AllocationPolicy {
 public:
  bool adaptive() const override { return false; }
  Allocation Decide(const Scene& scene) override;
};

}  // namespace muster::sim

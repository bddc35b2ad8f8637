// Optimus with an oracle: GPUs one by one to the job whose remaining time shrinks most.
//
// It knows the true times and how many iterations are left, so it stands for no scheduler that
// could be built; the publication compares with it all the same.
#pragma once

#include "sim/pollux/policy.h"

namespace muster::sim {

// The GPUs over which the batch of a job can be split.
int MostGpus(const TrainJob& job);
// By the truth, on the GPUs that it asked for.
double SecondsLeft(const TrainJob& job, int gpus_per_node);

class Optimus : public AllocationPolicy {
 public:
  bool adaptive() const override { return false; }
  Allocation Decide(const Scene& scene) override;
};

}  // namespace muster::sim

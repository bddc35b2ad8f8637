// AlnairGreedy: the elastic allocator of Alnair, for jobs with a fixed batch.
//
// A job is looked at once, when it comes: it gets as many GPUs as it can use if so many are free,
// else all that are free. Where none is, the jobs before it are cut to one GPU each, in their
// order, until something has come free, and it gets all of that. Nobody grows later, when GPUs come
// free, and nobody asks what a change costs. A job takes at least one GPU and at most those that
// its batch can be split over (the original gives it more, which no job here could use). It is
// placed as by the other allocator of Alnair, since this one leaves that to Kubernetes: on the node
// with fewest free GPUs that has all of them, else on those with most.
#pragma once

#include <unordered_map>

#include "sim/pollux/policy.h"

namespace muster::sim {

class AlnairGreedy : public AllocationPolicy {
 public:
  bool adaptive() const override { return false; }
  Allocation Decide(const Scene& scene) override;

 private:
  std::unordered_map<const TrainJob*, int> targets_;  // GPUs of those that have been admitted
};

}  // namespace muster::sim

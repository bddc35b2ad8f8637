// AllocationPolicy: who gets which GPUs of the Pollux set, asked once an interval.
//
// A policy is one small file behind this interface. It sees the jobs that are there and gives each
// its nodes; a job that it does not name gets none. It may keep a memory of its own, and must
// decide the same for the same seed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/pollux/train_job.h"

namespace muster::sim {

struct Scene {
  std::int64_t now_s = 0;
  int nodes = 0;
  int gpus_per_node = 0;
  std::vector<TrainJob*> jobs;  // there and not finished, in the order of submission
  // No: what comes of a decision is not asked for any more. For those that take long.
  std::function<bool()> goes_on = [] { return true; };
};

// Of each job of the scene: the node of each GPU, those of one node beside each other.
using Allocation = std::vector<std::vector<int>>;

class AllocationPolicy {
 public:
  virtual ~AllocationPolicy() = default;
  // Whether its jobs choose their own batch and number of GPUs.
  virtual bool adaptive() const = 0;
  virtual Allocation Decide(const Scene& scene) = 0;
};

}  // namespace muster::sim

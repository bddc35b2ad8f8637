// DeviceSum: gradients that are summed up where they were computed, over the links between GPUs.
//
// For fast mode: the order of the sums is that of the library which makes them. All workers of a
// view form a group, each with a device of its own; that takes a second or more, so it is done
// beside the work (device_group.h). From then on a worker adds up its shards on its device, the
// group sums that, and each part of it comes back to its owner alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/exact/shard_tree.h"
#include "train/run/extent.h"
#include "train/run/workload.h"

namespace muster::train {

class DeviceSum {
 public:
  // The gradients of one step of this worker, and how they are cut: each bucket into as many parts
  // as there are workers, one for each rank.
  struct Task {
    std::int64_t step = 0;
    ShardRange shards;
    std::span<const Extent> buckets;
    int parts = 1;
    int part = 0;  // of this worker
  };

  virtual ~DeviceSum() = default;
  // No two of a group have the same; empty: it cannot be in one.
  virtual std::string Device() const = 0;
  // Before all else of a group: from here on Leave is meant for this one.
  virtual void Begin() = 0;
  // One makes it, and all join with it.
  virtual Result<std::string> Invite() = 0;
  // Waits for the others; ends with an error at once when Leave is called, or was before.
  virtual Result<void> Join(const std::string& invitation, int rank, int size) = 0;
  virtual void Leave() = 0;  // from any thread
  // Writes the own part of each bucket and says so. An error: the group is of no use any more.
  virtual Result<std::vector<ShardResult>> Compute(const Task& task,
                                                   std::span<const float> parameters,
                                                   std::span<float> gradient,
                                                   ShardProgress& progress) = 0;
};

}  // namespace muster::train

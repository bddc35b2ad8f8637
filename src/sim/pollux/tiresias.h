// Tiresias: least attained service in two queues, with the GPUs that a job asked for.
//
// A job that has used 16 GPU-hours goes to the end of the second queue and stays there. Each
// interval the queues are walked in order: who fits in what is left runs, who does not waits.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/pollux/policy.h"

namespace muster::sim {

class Tiresias : public AllocationPolicy {
 public:
  bool adaptive() const override { return false; }
  Allocation Decide(const Scene& scene) override;

 private:
  struct Record {
    int queue = 0;
    std::uint64_t rank = 0;  // in its queue
    bool running = false;
    std::int64_t checked_s = 0;
    std::int64_t executed_s = 0;
  };
  std::unordered_map<const TrainJob*, Record> records_;
  std::uint64_t next_rank_ = 0;
};

}  // namespace muster::sim

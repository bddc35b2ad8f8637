// Muster's own policy on the Pollux set: the engine that runs in production, asked once an
// interval.
//
// Every job is an elastic job of one queue; it reports what it has learned of its speed, and
// nothing of how long it will take. Workers that are told to leave are gone at once, and the engine
// is asked again until it wants nothing more.
#pragma once

#include <memory>
#include <unordered_map>

#include "engine/cluster.h"
#include "engine/cycle.h"
#include "sim/pollux/policy.h"

namespace muster::sim {

class MusterPolicy : public AllocationPolicy {
 public:
  MusterPolicy(int nodes, int gpus_per_node, const engine::Policy& policy);
  bool adaptive() const override { return true; }
  Allocation Decide(const Scene& scene) override;

 private:
  void Know(const Scene& scene);
  void Settle(std::int64_t now_ms);

  std::unique_ptr<engine::Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::unordered_map<const TrainJob*, engine::JobId> known_;
};

}  // namespace muster::sim

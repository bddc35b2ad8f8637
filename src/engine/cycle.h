// Scheduler: one scheduling cycle, least disruptive step first.
//
// Fair shares, then: keep last cycle's promises; place waiting pieces on free (or soon free) room;
// shrink elastic jobs; move workers so that somebody fits; reclaim between queues; preempt inside a
// queue; drain nodes; evict gangs that stayed below their minimum. Each step serves queues in
// QueueOrder and jobs in WaitKey order; a piece that cannot be served is skipped. On return the
// Cluster has started what the plan starts and regards what the plan stops as leaving. With
// unchanged facts the next plan is empty. All facts are the Cluster's; the object only remembers
// where its rounds stand: who was looked at last, and which searches were cut off.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/cluster.h"
#include "model/plan.h"

namespace muster::engine {

class Scheduler {
 public:
  explicit Scheduler(Cluster& cluster);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  model::Plan Cycle(std::int64_t now_ms);

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace muster::engine

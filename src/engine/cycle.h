// Cycle: one scheduling cycle, least disruptive step first.
//
// Fair shares, then: place waiting pieces on free (or soon free) room; shrink elastic jobs; move
// workers so that somebody fits; reclaim between queues; preempt inside a queue; drain nodes; evict
// gangs that stayed below their minimum. Each step serves queues in QueueOrder and jobs in WaitKey
// order; a piece that cannot be served is skipped. On return the Cluster has started what the plan
// starts and regards what the plan stops as leaving. With unchanged facts the next cycle's plan is
// empty.
#pragma once

#include <cstdint>

#include "engine/cluster.h"
#include "model/plan.h"

namespace muster::engine {

model::Plan RunCycle(Cluster& cluster, std::int64_t now_ms);

}  // namespace muster::engine

// Metrics: figures about Muster itself, for Prometheus.
//
// Worked out when they are asked for, from what the controller and the meter know. What a caller
// may not see is not counted for it. The number of series is bounded by the operations of the API,
// the phases and the queues; nothing a client sends becomes a label.
#pragma once

#include "api/desk.h"
#include "api/meter.h"

namespace muster::api {

void GetMetrics(Desk& desk, const Call& call, const std::shared_ptr<const Meter>& meter,
                std::size_t watchers);

}  // namespace muster::api

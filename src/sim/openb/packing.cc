#include "sim/openb/packing.h"

#include <algorithm>

namespace muster::sim {

ScoredPolicy::Judgement Packing::Judge(const NodeState& node, const PodShape& pod,
                                       double /*value*/) const {
  if (pod.gpus == 0) return {};
  const std::uint32_t gpu = node.TightestGpu(pod.gpu_milli);
  const std::int64_t idle = node.idle_gpus();
  if (idle == node.gpus) return {std::max<std::int64_t>(33 - idle, idle), gpu};
  if (!pod.shares()) return {std::max<std::int64_t>(50 - pod.gpus, 33), gpu};
  if (node.room[gpu] == kWholeGpu) return {49, gpu};
  const std::int64_t free_percent = node.room[gpu] * 100 / kWholeGpu;
  return {std::max<std::int64_t>(100 - free_percent / 10, 50), gpu};
}

}  // namespace muster::sim

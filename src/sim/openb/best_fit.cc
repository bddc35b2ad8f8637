#include "sim/openb/best_fit.h"

namespace muster::sim {

ScoredPolicy::Judgement BestFit::Judge(const NodeState& node, const PodShape& pod,
                                       double /*value*/) const {
  const auto cpu_left = static_cast<double>(node.cpu_milli - pod.cpu_milli);
  const auto gpu_left = static_cast<double>(node.idle_milli() - pod.total_gpu_milli());
  const double left = cpu_left / kLargestCpuMilli * 0.5 + gpu_left / kLargestGpuMilli * 0.5;
  return {static_cast<std::int64_t>((1 - left) * 100), node.TightestGpu(pod.gpu_milli)};
}

}  // namespace muster::sim

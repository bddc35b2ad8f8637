#include "sim/openb/dot_product.h"

namespace muster::sim {
namespace {

double Product(std::int64_t free, std::int64_t asked, double most) {
  return static_cast<double>(free) / most * (static_cast<double>(asked) / most);
}

}  // namespace

ScoredPolicy::Judgement DotProduct::Judge(const NodeState& node, const PodShape& pod,
                                          double /*value*/) const {
  const double product = Product(node.cpu_milli, pod.cpu_milli, kLargestCpuMilli) +
                         Product(node.idle_milli(), pod.total_gpu_milli(), kLargestGpuMilli);
  return {static_cast<std::int64_t>(100 * (1 - product / 2)), node.TightestGpu(pod.gpu_milli)};
}

}  // namespace muster::sim

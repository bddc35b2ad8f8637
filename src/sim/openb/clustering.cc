#include "sim/openb/clustering.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kStep = 25;

}  // namespace

ScoredPolicy::Judgement Clustering::Judge(const NodeState& node, const PodShape& pod,
                                          double /*value*/) const {
  const std::uint32_t kind = KindOf(pod);
  if (kind == 0) return {};
  std::int64_t rank = 0;
  if (node.kinds == kind)
    rank = 3;
  else if ((node.kinds & kind) != 0)
    rank = 2;
  else if (node.kinds == 0)
    rank = 1;
  const std::int64_t fullness = kStep * (kLargestGpuMilli - node.idle_milli()) / kLargestGpuMilli;
  return {fullness + kStep * rank, node.TightestGpu(pod.gpu_milli)};
}

}  // namespace muster::sim

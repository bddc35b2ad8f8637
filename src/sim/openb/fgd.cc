#include "sim/openb/fgd.h"

#include <cmath>

namespace muster::sim {

ScoredPolicy::Judgement Fgd::Judge(const NodeState& node, const PodShape& pod,
                                   double before) const {
  const auto score = [&](std::uint32_t gpu) {
    NodeState after = node;
    after.Take(pod, gpu);
    const double fewer = (before - target_.Fragmentation(after)) / static_cast<double>(kWholeGpu);
    return static_cast<std::int64_t>(100 / (1 + std::exp(-fewer)));
  };
  if (!pod.shares()) return {score(0), 0};
  Judgement best{-1, 0};
  std::int32_t last_room = -1;
  for (std::uint32_t gpu = 0; gpu < node.gpus; ++gpu) {
    if (node.room[gpu] < pod.gpu_milli || node.room[gpu] == last_room) continue;
    last_room = node.room[gpu];
    if (const std::int64_t found = score(gpu); found > best.score) best = {found, gpu};
  }
  return best;
}

}  // namespace muster::sim

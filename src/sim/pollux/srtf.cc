#include "sim/pollux/srtf.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/pollux/in_order.h"
#include "sim/pollux/optimus.h"

namespace muster::sim {

Allocation PolluxSrtf::Decide(const Scene& scene) {
  std::vector<double> left_s;
  left_s.reserve(scene.jobs.size());
  for (const auto* job : scene.jobs) left_s.push_back(SecondsLeft(*job, scene.gpus_per_node));
  std::vector<std::size_t> order(scene.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return left_s[i]; });
  return RunInOrder(scene, order);
}

}  // namespace muster::sim

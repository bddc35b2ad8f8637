#include "sim/pollux/alnair.h"

#include <algorithm>

#include "sim/pollux/optimus.h"
#include "sim/pollux/spread.h"

namespace muster::sim {

Allocation AlnairGreedy::Decide(const Scene& scene) {
  const std::size_t count = scene.jobs.size();
  std::vector<int> gpus(count, 0);
  int free = scene.nodes * scene.gpus_per_node;
  for (std::size_t i = 0; i < count; ++i) {
    const auto known = targets_.find(scene.jobs[i]);
    if (known == targets_.end()) continue;
    gpus[i] = known->second;
    free -= gpus[i];
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (gpus[i] > 0) continue;
    for (std::size_t other = 0; other < count && free == 0; ++other) {
      if (gpus[other] <= 1) continue;
      free += gpus[other] - 1;
      gpus[other] = 1;
    }
    gpus[i] = std::min(free, std::max(1, MostGpus(*scene.jobs[i])));
    free -= gpus[i];
  }

  targets_.clear();
  Allocation allocation(count);
  FreeGpus room(scene);
  for (std::size_t i = 0; i < count; ++i) {
    if (gpus[i] > 0) targets_[scene.jobs[i]] = gpus[i];
    const auto& nodes = scene.jobs[i]->nodes();
    const auto kept = std::min(nodes.size(), static_cast<std::size_t>(gpus[i]));
    allocation[i].assign(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(kept));
    room.Keep(allocation[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (allocation[i].empty()) allocation[i] = room.TakeTogether(gpus[i]);
  }
  return allocation;
}

}  // namespace muster::sim

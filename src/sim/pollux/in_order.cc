#include "sim/pollux/in_order.h"

#include <vector>

#include "sim/pollux/spread.h"

namespace muster::sim {

Allocation RunInOrder(const Scene& scene, std::span<const std::size_t> order, bool strict) {
  int left = scene.nodes * scene.gpus_per_node;
  std::vector<bool> runs(scene.jobs.size());
  for (const auto i : order) {
    const int gpus = scene.jobs[i]->request().gpus;
    runs[i] = gpus <= left;
    if (runs[i]) left -= gpus;
    if (!runs[i] && strict) break;
  }
  Allocation allocation(scene.jobs.size());
  FreeGpus free(scene);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    allocation[i] = scene.jobs[i]->nodes();
    free.Keep(allocation[i]);
  }
  for (const auto i : order) {
    if (runs[i] && allocation[i].empty()) {
      allocation[i] = free.Take(scene.jobs[i]->request().gpus);
    }
  }
  return allocation;
}

}  // namespace muster::sim

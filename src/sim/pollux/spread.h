// FreeGpus: the placement rule that Tiresias and Optimus share in the published simulator.
//
// A job takes from the node with most free GPUs until it has enough. Its nodes stay in the order in
// which they were taken, which decides its true step times.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/pollux/policy.h"

namespace muster::sim {

class FreeGpus {
 public:
  explicit FreeGpus(const Scene& scene)
      : free_(static_cast<std::size_t>(scene.nodes), scene.gpus_per_node) {}

  void Keep(const std::vector<int>& nodes) {
    for (const int node : nodes) --free_[static_cast<std::size_t>(node)];
  }
  // From the node with most free GPUs, the first of several, until there are enough. There are.
  std::vector<int> Take(int gpus) {
    std::vector<int> nodes;
    while (gpus > 0) {
      const auto most = std::ranges::max_element(free_);
      const int here = std::min(gpus, *most);
      nodes.insert(nodes.end(), static_cast<std::size_t>(here),
                   static_cast<int>(most - free_.begin()));
      *most -= here;
      gpus -= here;
    }
    return nodes;
  }
  // All of one node where that is possible: of the one with fewest free GPUs that has so many.
  std::vector<int> TakeTogether(int gpus) {
    auto best = free_.end();
    for (auto node = free_.begin(); node != free_.end(); ++node) {
      if (*node >= gpus && (best == free_.end() || *node < *best)) best = node;
    }
    if (best == free_.end()) return Take(gpus);
    *best -= gpus;
    return std::vector<int>(static_cast<std::size_t>(gpus), static_cast<int>(best - free_.begin()));
  }

 private:
  std::vector<int> free_;
};

}  // namespace muster::sim

#include "sim/pollux/fifo.h"

#include <numeric>
#include <vector>

#include "sim/pollux/in_order.h"

namespace muster::sim {

Allocation PolluxFifo::Decide(const Scene& scene) {
  std::vector<std::size_t> order(scene.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return RunInOrder(scene, order, true);
}

}  // namespace muster::sim

#include "sim/openb/cluster.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace muster::sim {

std::int64_t NodeState::idle_milli() const {
  const auto all = rooms();
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

std::uint32_t NodeState::idle_gpus() const {
  const auto all = rooms();
  return static_cast<std::uint32_t>(std::count(all.begin(), all.end(), kWholeGpu));
}

bool NodeState::HasGpus(std::uint32_t count, std::int64_t milli) const {
  std::uint32_t found = 0;
  for (const std::int32_t free : rooms())
    if (free >= milli && ++found >= count) return true;
  return count == 0;
}

bool NodeState::Fits(const PodShape& pod) const {
  return pod.cpu_milli <= cpu_milli && pod.memory_mib <= memory_mib &&
         (pod.gpus == 0 || (Offers(pod.types) && HasGpus(pod.gpus, pod.gpu_milli)));
}

void NodeState::Take(const PodShape& pod, std::uint32_t gpu) {
  cpu_milli -= pod.cpu_milli;
  memory_mib -= pod.memory_mib;
  MUSTER_CHECK(cpu_milli >= 0, "a pod went to a node without the cores for it");
  MUSTER_CHECK(memory_mib >= 0, "a pod went to a node without the memory for it");
  if (pod.shares()) {
    room[gpu] -= static_cast<std::int32_t>(pod.gpu_milli);
    MUSTER_CHECK(room[gpu] >= 0, "a share went to a GPU without room for it");
  } else {
    std::uint32_t missing = pod.gpus;
    for (std::uint32_t i = 0; i < gpus && missing > 0; ++i) {
      if (room[i] < pod.gpu_milli) continue;
      room[i] -= static_cast<std::int32_t>(pod.gpu_milli);
      --missing;
    }
    MUSTER_CHECK(missing == 0, "a pod went to a node without the GPUs for it");
  }
  kinds |= KindOf(pod);
  ++version;
}

std::uint32_t NodeState::TightestGpu(std::int64_t milli) const {
  std::uint32_t best = gpus;
  for (std::uint32_t i = 0; i < gpus; ++i)
    if (room[i] >= milli && (best == gpus || room[i] < room[best])) best = i;
  return best;
}

std::uint32_t KindOf(const PodShape& pod) {
  if (pod.gpus == 0) return 0;
  return 1U << (pod.shares() ? 0U : std::min(pod.gpus, 31U));
}

std::int64_t OpenbTrace::gpu_milli() const {
  std::int64_t sum = 0;
  for (const NodeState& node : nodes) sum += node.gpus * kWholeGpu;
  return sum;
}

}  // namespace muster::sim

#include "sim/pollux/tiresias.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/pollux/in_order.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kFirstQueueGpuSeconds = 16 * 3600;

}  // namespace

Allocation Tiresias::Decide(const Scene& scene) {
  std::vector<Record*> records;
  for (const auto* job : scene.jobs) {
    const auto [found, fresh] = records_.try_emplace(job);
    auto& record = found->second;
    if (fresh) record.rank = next_rank_++;
    records.push_back(&record);
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto& record = *records[i];
    if (record.running) {
      record.executed_s += scene.now_s - record.checked_s;
      const auto service = record.executed_s * scene.jobs[i]->request().gpus;
      if (record.queue == 0 && service >= kFirstQueueGpuSeconds) {
        record.queue = 1;
        record.rank = next_rank_++;
      }
    }
    record.checked_s = scene.now_s;
  }

  std::vector<std::size_t> order(records.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::tuple(records[i]->queue, records[i]->rank); });
  auto allocation = RunInOrder(scene, order);
  for (std::size_t i = 0; i < records.size(); ++i) records[i]->running = !allocation[i].empty();
  return allocation;
}

}  // namespace muster::sim

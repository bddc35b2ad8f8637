#include "sim/pollux/gavel.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/gavel_shares.h"
#include "sim/pollux/in_order.h"
#include "sim/pollux/optimus.h"

namespace muster::sim {

Allocation PolluxGavel::Decide(const Scene& scene) {
  for (const auto* job : scene.jobs) {
    const auto [found, fresh] = records_.try_emplace(job, Record{0, scene.now_s});
    auto& record = found->second;
    if (job->gpus() > 0) record.ran_s += scene.now_s - record.checked_s;
    record.checked_s = scene.now_s;
  }
  if (scene.now_s >= next_round_s_) {
    next_round_s_ = (scene.now_s / kRoundSeconds + 1) * kRoundSeconds;
    return Round(scene);
  }
  Allocation as_it_is;
  as_it_is.reserve(scene.jobs.size());
  for (const auto* job : scene.jobs) as_it_is.push_back(job->nodes());
  return as_it_is;
}

Allocation PolluxGavel::Round(const Scene& scene) {
  const std::int64_t room = std::int64_t{scene.nodes} * scene.gpus_per_node;
  std::vector<GavelJob> jobs;
  std::int64_t asked = 0;
  for (const auto* job : scene.jobs) {
    const bool oracle = aim_ == Aim::kMakespan;
    jobs.push_back({job->request().gpus, oracle ? SecondsLeft(*job, scene.gpus_per_node) : 0});
    asked += job->request().gpus;
  }
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (asked <= room) return RunInOrder(scene, order);
  const auto shares = aim_ == Aim::kMaxMin ? MaxMinShares(jobs, room) : MakespanShares(jobs, room);
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const auto& job = *scene.jobs[i];
    const auto there = static_cast<double>(scene.now_s - job.request().submit_s);
    return RankOf(static_cast<double>(records_.at(&job).ran_s), there, shares[i], i);
  });
  return RunInOrder(scene, order);
}

}  // namespace muster::sim

#include "engine/victims.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace muster::engine {
bool AskedBefore(const VictimUnit& a, const VictimUnit& b) {
  const auto rank = [](const VictimUnit& unit) {
    return std::tuple(!unit.fresh, unit.priority, unit.part == VictimUnit::Part::kJob,
                      -unit.submitted_ms);
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a.sequence != b.sequence) return a.sequence > b.sequence;
  return a.turn < b.turn;
}

namespace {

bool LosesLess(const VictimUnit& a, const VictimUnit& b) {
  if (a.fresh != b.fresh) return a.fresh;
  if (a.lost_gpu_ms != b.lost_gpu_ms) return a.lost_gpu_ms < b.lost_gpu_ms;
  return AskedBefore(a, b);
}

void AddSurplus(const JobState& job, std::uint32_t group, VictimUnit& unit,
                std::vector<VictimUnit>& out) {
  const GroupState& state = job.groups[group];
  if (state.leaf) {
    if (state.active <= state.minimum) return;
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = state.first_worker; i < state.first_worker + state.worker_count; ++i) {
      if (job.workers[i].place.state == WorkerState::kRunning && !job.workers[i].place.promised) {
        order.push_back(i);
      }
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Worker &x = job.workers[a], &y = job.workers[b];
      if (x.priority != y.priority) return x.priority < y.priority;
      if (x.started_ms != y.started_ms) return x.started_ms > y.started_ms;
      return a > b;
    });
    // Promised workers do not run yet: they spare nobody.
    const auto promised = std::count_if(
        job.workers.begin() + state.first_worker,
        job.workers.begin() + state.first_worker + state.worker_count,
        [](const Worker& worker) { return worker.place.Holds() && worker.place.promised; });
    const auto spared = state.minimum + static_cast<std::size_t>(promised);
    if (state.active <= spared) return;
    const auto surplus = std::min<std::size_t>(order.size(), state.active - spared);
    for (std::size_t i = 0; i < surplus; ++i) {
      unit.part = VictimUnit::Part::kWorker;
      unit.index = order[i];
      unit.fresh = job.workers[order[i]].place.fresh;
      out.push_back(unit);
      ++unit.turn;
    }
    return;
  }
  std::uint32_t spare = state.satisfied - std::min(state.satisfied, state.minimum);
  for (auto child = state.children.rbegin(); child != state.children.rend(); ++child) {
    AddSurplus(job, *child, unit, out);
    if (spare == 0 || !job.groups[*child].Satisfied()) continue;
    --spare;
    unit.part = VictimUnit::Part::kGroup;
    unit.index = *child;
    unit.fresh = false;
    out.push_back(unit);
    ++unit.turn;
  }
}

void AddJob(const Cluster& cluster, JobId id, std::int64_t now_ms, std::vector<VictimUnit>& out) {
  const JobState& job = cluster.job(id);
  if (!job.preemptible) return;
  VictimUnit unit;
  unit.job = id;
  unit.priority = job.priority;
  unit.submitted_ms = job.submitted_ms;
  unit.sequence = job.sequence;
  std::int64_t gpu_milli = 0;
  bool fresh = true;
  for (const auto& worker : job.workers) {
    if (!worker.place.Holds()) continue;
    gpu_milli += worker.place.charge_milli;
    fresh &= worker.place.fresh;
  }
  const auto lost = cluster.policy().compare_lost_work ? cluster.LostWorkMs(job, gpu_milli, now_ms)
                                                       : std::int64_t{-1};
  unit.lost_gpu_ms = lost < 0 ? -1 : 0;  // giving a worker back at a step boundary loses nothing
  if (job.Satisfied()) AddSurplus(job, 0, unit, out);
  unit.part = VictimUnit::Part::kJob;
  unit.fresh = fresh;
  unit.lost_gpu_ms = lost;
  out.push_back(unit);
}

}  // namespace

std::span<const VictimUnit> RunningUnits::Of(QueueId queue, std::int64_t now_ms) {
  if (kept_.size() <= queue) kept_.resize(queue + 1);
  Listed& kept = kept_[queue];
  const auto changes = cluster_.changes_in(queue);
  if (kept.changes == changes && (!kept.ages || kept.now_ms == now_ms)) return kept.units;
  kept.units.clear();
  for (const JobId job : cluster_.RunningIn(queue)) AddJob(cluster_, job, now_ms, kept.units);
  kept.changes = changes;
  kept.now_ms = now_ms;
  kept.ages = std::any_of(kept.units.begin(), kept.units.end(),
                          [](const VictimUnit& unit) { return unit.lost_gpu_ms >= 0; });
  return kept.units;
}

void VictimList::Build(RunningUnits& running, std::span<const QueueId> queues, std::int64_t now_ms,
                       bool surplus_only) {
  units_.clear();
  sorted_ = 0;
  for (const QueueId queue : queues) {
    const auto units = running.Of(queue, now_ms);
    std::copy_if(units.begin(), units.end(), std::back_inserter(units_), [&](const auto& unit) {
      return !surplus_only || unit.part != VictimUnit::Part::kJob;
    });
  }
  Arrange();
}

void VictimList::BuildFor(const Cluster& cluster, std::span<const JobId> jobs,
                          std::int64_t now_ms) {
  units_.clear();
  sorted_ = 0;
  for (const JobId job : jobs) AddJob(cluster, job, now_ms, units_);
  Arrange();
}

void VictimList::Arrange() {
  const auto known = static_cast<std::size_t>(std::count_if(
      units_.begin(), units_.end(), [](const auto& u) { return u.lost_gpu_ms >= 0; }));
  by_lost_work_ = known == units_.size() && known > 0;
  if (known > 0 && !by_lost_work_) {
    std::sort(units_.begin(), units_.end(), AskedBefore);
    std::vector<VictimUnit> by_loss;
    for (const auto& unit : units_) {
      if (unit.lost_gpu_ms >= 0) by_loss.push_back(unit);
    }
    std::sort(by_loss.begin(), by_loss.end(), LosesLess);
    auto next = by_loss.begin();
    for (auto& unit : units_) {
      if (unit.lost_gpu_ms >= 0) unit = *next++;
    }
    sorted_ = units_.size();
    return;
  }
  // The heap lies behind the sorted part, its top at the end, so that taking it shrinks it by one.
  std::make_heap(units_.rbegin(), units_.rend(), [this](const auto& a, const auto& b) {
    return by_lost_work_ ? LosesLess(b, a) : AskedBefore(b, a);
  });
}

const VictimUnit* VictimList::At(std::size_t i) {
  if (i >= units_.size()) return nullptr;
  const auto later = [this](const VictimUnit& a, const VictimUnit& b) {
    return by_lost_work_ ? LosesLess(b, a) : AskedBefore(b, a);
  };
  while (sorted_ <= i) {
    // rbegin() is the heap's first element; pop_heap puts the top at the heap's end, our front.
    std::pop_heap(units_.rbegin(), units_.rend() - static_cast<std::ptrdiff_t>(sorted_), later);
    ++sorted_;
  }
  return &units_[i];
}

void VictimList::Workers(const Cluster& cluster, const VictimUnit& unit,
                         std::vector<WorkerRef>& out) {
  out.clear();
  const JobState& job = cluster.job(unit.job);
  const auto take = [&](std::uint32_t i) {
    const auto& place = job.workers[i].place;
    if (place.state == WorkerState::kRunning && !place.promised) out.push_back({unit.job, i});
  };
  if (unit.part == VictimUnit::Part::kWorker) {
    take(unit.index);
    return;
  }
  for (std::uint32_t i = 0; i < job.workers.size(); ++i) {
    std::uint32_t g = job.workers[i].group;
    while (unit.part == VictimUnit::Part::kGroup && g != kNone && g != unit.index) {
      g = job.groups[g].parent;
    }
    if (g != kNone) take(i);
  }
}

}  // namespace muster::engine

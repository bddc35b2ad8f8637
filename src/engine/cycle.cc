#include "engine/cycle.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "engine/lanes.h"
#include "engine/placement.h"
#include "engine/search.h"

namespace muster::engine {

using model::Action;
using model::ActionKind;
using model::Gate;
using model::Plan;
using model::Rule;

namespace {

class Cycle {
 public:
  Cycle(Cluster& cluster, std::int64_t now_ms)
      : cluster_(cluster),
        now_ms_(now_ms),
        placement_(cluster),
        search_(cluster, placement_, now_ms),
        budget_(cluster.policy().search_budget) {}

  Plan Run();

 private:
  struct Cause {
    JobId claimer = kNone;
    Rule rule = Rule::kFreeCapacity;
  };

  void Allocate();
  bool AllocateNext(JobId job);
  void Claim(Step step);
  bool ClaimNext(Step step, JobId job);
  bool MayClaim(Step step, const JobState& job, const Piece& piece) const;
  bool MayHelp(Step step, ClassId job_class);
  bool RoomAfterMoves(const JobClass& job_class) const;
  bool Enough(ClassId job_class, Mode mode);
  void Drain();
  void EvictStale();
  void Evict(const std::vector<WorkerRef>& workers, JobId claimer, Rule rule);
  void RefreshTouched();
  void Conclude();
  void ConcludeWorker(WorkerRef ref, const Place& before);

  Cluster& cluster_;
  std::int64_t now_ms_;
  Placement placement_;
  Search search_;
  std::int64_t budget_;
  Plan plan_;
  std::vector<Piece> pieces_;
  std::map<WorkerRef, Cause> causes_;
  std::vector<JobId> touched_;  // jobs whose place in the waiting index may have changed
  std::vector<std::pair<WorkerRef, BankId>> hints_;
  std::vector<std::pair<WorkerRef, Place>> changes_;
};

Plan Cycle::Run() {
  const Policy& policy = cluster_.policy();
  cluster_.ForgetLog();
  cluster_.DivideShares();
  Allocate();
  if (policy.shrink) Claim(Step::kShrink);
  if (policy.consolidate) Claim(Step::kConsolidate);
  if (policy.reclaim) Claim(Step::kReclaim);
  if (policy.preempt) Claim(Step::kPreempt);
  Drain();
  if (policy.evict_stale) EvictStale();
  Conclude();
  plan_.steps += placement_.steps();
  return std::move(plan_);
}

// Whether slot counts allow what every job of the class asks for first.
bool Cycle::Enough(ClassId id, Mode mode) {
  for (const auto& need : cluster_.job_class(id).needs) {
    if (cluster_.shapes().Slots(need.shape, mode) < need.count) return false;
  }
  return true;
}

void Cycle::Allocate() {
  Lanes lanes(cluster_);
  lanes.Open([this](ClassId id) { return Enough(id, Mode::kFuture); });
  while (const auto next = lanes.Next()) {
    if (!Enough(next->job_class, Mode::kFuture)) {
      lanes.SkipClass();
    } else if (AllocateNext(next->job)) {
      touched_.push_back(next->job);
      lanes.Served(cluster_.job(next->job));
    } else {
      lanes.SkipJob();
    }
  }
  RefreshTouched();
}

bool Cycle::AllocateNext(JobId id) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  for (const auto& piece : pieces_) {
    if (!cluster_.queues().WithinLimits(job.queue, piece.cost)) continue;
    if (!job.preemptible && !cluster_.queues().WithinFixedQuota(job.queue, piece.cost)) continue;
    for (const Mode mode : {Mode::kFree, Mode::kFuture}) {
      if (placement_.MayFit(piece, mode) && placement_.Place(piece, mode)) return true;
    }
  }
  return false;
}

// After moves the same amount is free as before, so all that the class asks for must be free now.
bool Cycle::RoomAfterMoves(const JobClass& job_class) const {
  const auto& nodes = cluster_.nodes();
  for (const auto& need : job_class.needs) {
    const Shape& shape = cluster_.shapes()[need.shape];
    const auto& gpu = shape.spec.request.gpu;
    if (gpu.kind != model::GpuKind::kWhole) continue;
    std::int64_t free = 0;
    for (TypeId type = 0; type < nodes.type_count(); ++type) {
      if (shape.type_rank[type] != kNone) free += nodes.FreeMilli(type, Mode::kFuture);
    }
    if (free < need.count * gpu.devices * kMilli) return false;
  }
  return true;
}

bool Cycle::MayHelp(Step step, ClassId id) {
  if (step == Step::kConsolidate && !RoomAfterMoves(cluster_.job_class(id))) return false;
  return Enough(id, Mode::kEmptied);
}

bool Cycle::MayClaim(Step step, const JobState& job, const Piece& piece) const {
  const auto& queues = cluster_.queues();
  if (now_ms_ - job.submitted_ms < job.preemption_delay_ms) return false;
  const QueueState& queue = queues[job.queue];
  switch (step) {
    case Step::kConsolidate:
      return queues.WithinLimits(job.queue, piece.cost) &&
             (job.preemptible || queues.WithinFixedQuota(job.queue, piece.cost));
    case Step::kPreempt:
      return std::any_of(cluster_.RunningIn(job.queue).begin(), cluster_.RunningIn(job.queue).end(),
                         [&](JobId other) {
                           return cluster_.job(other).preemptible &&
                                  cluster_.job(other).priority < job.priority;
                         });
    case Step::kShrink:
      if (job.Satisfied()) return false;
      break;
    case Step::kReclaim:
      break;
  }
  for (std::size_t d = 0; d < queues.dims(); ++d) {
    if (queue.held[d] + piece.cost[d] > queue.share[d]) return false;
  }
  return job.preemptible || queues.WithinFixedQuota(job.queue, piece.cost);
}

void Cycle::Claim(Step step) {
  Lanes lanes(cluster_);
  lanes.Open([&](ClassId id) { return MayHelp(step, id); });
  while (const auto next = lanes.Next()) {
    if (budget_ <= 0) {
      plan_.complete = false;
      break;
    }
    if (!MayHelp(step, next->job_class)) {
      lanes.SkipClass();
    } else if (ClaimNext(step, next->job)) {
      touched_.push_back(next->job);
      lanes.Served(cluster_.job(next->job));
    } else {
      lanes.SkipJob();
    }
  }
  RefreshTouched();
}

bool Cycle::ClaimNext(Step step, JobId id) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  for (const auto& piece : pieces_) {
    if (!MayClaim(step, job, piece)) continue;
    // Room that victims of an earlier claim leave behind costs nobody anything.
    const bool bounded =
        cluster_.queues().WithinLimits(job.queue, piece.cost) &&
        (job.preemptible || cluster_.queues().WithinFixedQuota(job.queue, piece.cost));
    if (bounded && placement_.MayFit(piece, Mode::kFuture) &&
        placement_.Place(piece, Mode::kFuture)) {
      return true;
    }
    const auto outcome = search_.Run(step, piece, budget_);
    if (outcome == Search::Outcome::kNotProven) plan_.complete = false;
    if (outcome != Search::Outcome::kFound) continue;
    for (const auto& taken : search_.taken()) {
      const Rule rule = step == Step::kShrink ? Rule::kShrink
                        : taken.moved         ? Rule::kConsolidate
                                              : taken.rule;
      for (const auto& [ref, before] : taken.before) causes_[ref] = {id, rule};
      touched_.push_back(taken.unit.job);
    }
    return true;
  }
  return false;
}

void Cycle::Evict(const std::vector<WorkerRef>& workers, JobId claimer, Rule rule) {
  for (const auto& ref : workers) {
    const Place before = cluster_.worker(ref).place;
    Place to;
    if (!before.fresh) {
      to.left_bank = before.bank;
      to.left_devices = before.devices;
    }
    cluster_.Move(ref, to);
    causes_[ref] = {claimer, rule};
    touched_.push_back(ref.job);
  }
}

// Preemptible workers of draining nodes go elsewhere, or wait; a job that cannot do without them
// goes as a whole. Work that is not preemptible stays until it ends.
void Cycle::Drain() {
  for (const NodeId node : cluster_.Draining()) {
    std::vector<WorkerRef> here(cluster_.WorkersOn(node).begin(), cluster_.WorkersOn(node).end());
    std::sort(here.begin(), here.end());
    for (const auto& ref : here) {
      const JobState& job = cluster_.job(ref.job);
      const Place& place = cluster_.worker(ref).place;
      if (!job.preemptible || place.state != WorkerState::kRunning || place.promised) continue;
      std::vector<WorkerRef> leaving = {ref};
      Evict(leaving, ref.job, Rule::kDrain);
      Piece piece;
      piece.job = ref.job;
      piece.workers = {ref.index};
      const bool whole = !job.Satisfied();
      if (whole) {
        VictimUnit rest;
        rest.job = ref.job;
        VictimList::Workers(cluster_, rest, leaving);
        Evict(leaving, ref.job, Rule::kDrain);
        piece.group = 0;
      }
      placement_.PlaceLeavers(true);
      placement_.Place(piece, Mode::kFuture);
      placement_.PlaceLeavers(false);
    }
  }
  RefreshTouched();
}

void Cycle::EvictStale() {
  std::vector<JobId> broken(cluster_.Broken().begin(), cluster_.Broken().end());
  std::sort(broken.begin(), broken.end());
  for (const JobId id : broken) {
    const JobState& job = cluster_.job(id);
    const auto since = job.stale_since_ms < 0 ? now_ms_ : job.stale_since_ms;
    if (job.stale_since_ms < 0) cluster_.SetStaleSince(id, now_ms_);
    if (!job.stale_grace_ms || now_ms_ - since < *job.stale_grace_ms || job.succeeded > 0) continue;
    VictimUnit all;
    all.job = id;
    std::vector<WorkerRef> workers;
    VictimList::Workers(cluster_, all, workers);
    Evict(workers, id, Rule::kStale);
  }
  RefreshTouched();
}

void Cycle::RefreshTouched() {
  for (const JobId job : touched_) cluster_.RefreshWaiting(job);
  touched_.clear();
}

// Turns what was tried into what is: starts are started, victims are leaving, promises are hints.
void Cycle::Conclude() {
  cluster_.ListChanges(changes_);
  for (const auto& [ref, before] : changes_) ConcludeWorker(ref, before);
  for (const auto& [ref, before] : changes_) cluster_.RefreshWaiting(ref.job);
  cluster_.SetHints(hints_);
  cluster_.ForgetLog();
  for (const auto& [ref, before] : changes_) {
    const JobState& job = cluster_.job(ref.job);
    if (job.stale_since_ms >= 0 && job.Satisfied()) cluster_.SetStaleSince(ref.job, -1);
  }
}

void Cycle::ConcludeWorker(WorkerRef ref, const Place& before) {
  const Place now = cluster_.worker(ref).place;
  if (now == before) return;
  const auto& nodes = cluster_.nodes();
  const bool was_running = before.state == WorkerState::kRunning;
  Action action;
  action.job = ref.job;
  action.worker = ref.index;
  if (!was_running && now.promised) {
    plan_.promises.push_back({ref.job, ref.index, nodes.bank(now.bank).node});
    hints_.emplace_back(ref, now.bank);
    cluster_.Move(ref, before);
    return;
  }
  if (!was_running) {
    if (now.state != WorkerState::kRunning) return;
    Place started = now;
    started.fresh = false;
    cluster_.Move(ref, started);
    cluster_.SetStarted(ref, now_ms_);
    const GroupState& group = cluster_.job(ref.job).groups[cluster_.worker(ref).group];
    action.kind = group.active > group.minimum ? ActionKind::kGrow : ActionKind::kStart;
    action.node = nodes.bank(now.bank).node;
    action.devices = now.devices;
    action.cause = ref.job;
    plan_.actions.push_back(action);
    return;
  }
  const Cause cause = causes_.at(ref);
  action.rule = cause.rule;
  action.cause = cause.claimer;
  action.node = nodes.bank(before.bank).node;
  action.devices = before.devices;
  action.lost_gpu_ms = -1;
  if (now.promised) {
    action.kind = ActionKind::kMove;
    action.to_node = nodes.bank(now.bank).node;
    hints_.emplace_back(ref, now.bank);
  } else {
    action.kind = cluster_.job(ref.job).Satisfied() ? ActionKind::kShrink : ActionKind::kPause;
  }
  Place leaving = before;
  leaving.state = WorkerState::kLeaving;
  cluster_.Move(ref, leaving);
  plan_.actions.push_back(action);
}

}  // namespace

Plan RunCycle(Cluster& cluster, std::int64_t now_ms) { return Cycle(cluster, now_ms).Run(); }

}  // namespace muster::engine

#include "engine/cycle.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "base/units.h"
#include "engine/consolidation.h"
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

constexpr std::int64_t kBudgetPerChange = 4;      // what a placed worker adds to the search budget
constexpr std::size_t kClaimersPerCycle = 4;      // queues that nothing happened to but hope again
constexpr std::size_t kFewQueues = 64;            // all of them are looked at in every cycle
constexpr std::size_t kConsolidatedPerCycle = 8;  // job classes likewise
constexpr std::uint32_t kMostCutOffs = 6;         // that count: 2^6 cycles until the next try
constexpr std::int64_t kLeastBudget = 400;        // of consolidation
constexpr int kWaves = 12;                        // rounds of a cycle that undoes its own starts

}  // namespace

class Scheduler::Steps {
 public:
  explicit Steps(Cluster& cluster)
      : cluster_(cluster),
        placement_(cluster),
        search_(cluster, placement_),
        consolidation_(cluster, placement_),
        lanes_(cluster) {
    for (QueueId q = 1; q < cluster.queues().size(); ++q) {
      const auto& spec = cluster.queues().spec(q);
      min_runtimes_ |= spec.reclaim_min_runtime_ms > 0 || spec.preempt_min_runtime_ms > 0;
    }
  }

  Plan Run(std::int64_t now_ms);

 private:
  struct Cause {
    JobId claimer = kNone;
    Rule rule = Rule::kFreeCapacity;
  };

  void KeepPromises();
  void Allocate();
  bool AllocateNext(JobId job);
  void Consolidate();
  bool ConsolidateNext(JobId job);
  void Claim(Step step);
  bool ClaimNext(Step step, JobId job);
  void ListClaimers(Step step);
  bool ToBeTriedLater(Step step, const BucketHead& head);
  void NoteOutcome(Step step, JobId job, Search::Outcome outcome);
  bool VerdictMayAge(QueueId queue) const;
  bool MayClaim(Step step, QueueId queue, const Vec& cost, std::int64_t priority) const;
  bool TooYoung(const JobState& job) const {
    return now_ms_ - job.submitted_ms < job.preemption_delay_ms;
  }
  bool WithinBounds(const JobState& job, const Piece& piece) const;
  bool PlaceWithinBounds(const JobState& job, const Piece& piece, Mode mode);
  bool RoomAfterMoves(const JobClass& job_class) const;
  void Drain();
  void EvictStale();
  void Evict(const std::vector<WorkerRef>& workers, JobId claimer, Rule rule);
  void RefreshTouched();
  void Conclude();
  void StartWhereRoomIsFree();
  void TakeBackBrokenStarts();
  void CountStarts();
  void ConcludeStart(WorkerRef ref, const Place& before, const Place& now);
  void ConcludeVictim(WorkerRef ref, const Place& before, const Place& now);

  Cluster& cluster_;
  Placement placement_;
  Search search_;
  Consolidation consolidation_;
  Lanes lanes_;
  std::int64_t now_ms_ = 0;
  std::int64_t budget_ = 0;
  Plan plan_;
  std::vector<Piece> pieces_;
  std::vector<QueueId> claimers_;
  std::vector<QueueId> changed_;  // queues whose jobs changed since the last cycle
  std::array<QueueId, 3> next_claimer_{};
  ClassId next_class_ = 0;  // that consolidation looks at first
  // A search that was cut off is tried again after 2, 4, 8, ... cycles.
  struct CutOff {
    std::uint32_t times = 0;  // in a row
    std::int64_t until = 0;   // the cycle in which it is tried again
  };
  std::map<std::pair<std::uint32_t, Step>, CutOff> cut_off_;  // by bucket and step
  std::int64_t cycle_ = 0;
  std::vector<QueueId> undecided_;  // queues with a job that is to be looked at again later
  bool min_runtimes_ = false;       // some queue protects its young jobs
  std::map<WorkerRef, Cause> causes_;
  std::vector<JobId> touched_;  // jobs whose place in the waiting index may have changed
  std::vector<std::pair<WorkerRef, BankId>> hints_;
  std::vector<std::pair<WorkerRef, Place>> changes_;
  std::map<std::pair<JobId, std::uint32_t>, std::uint32_t> there_before_;  // by job and group
};

Scheduler::Scheduler(Cluster& cluster) : steps_(std::make_unique<Steps>(cluster)) {}
Scheduler::~Scheduler() = default;
Plan Scheduler::Cycle(std::int64_t now_ms) { return steps_->Run(now_ms); }

Plan Scheduler::Steps::Run(std::int64_t now_ms) {
  const Policy& policy = cluster_.policy();
  now_ms_ = now_ms;
  plan_ = Plan{};
  causes_.clear();
  hints_.clear();
  undecided_.clear();
  ++cycle_;
  cluster_.ForgetLog();
  cluster_.DivideShares();
  const auto moves = cluster_.moves(), steps = placement_.steps();
  if (policy.keep_promises) KeepPromises();
  for (int wave = 0; wave < kWaves; ++wave) {
    search_.BeginCycle(now_ms);
    const auto before = cluster_.moves();
    Allocate();
    cluster_.Unsettle();
    cluster_.TakeChangedQueues(changed_);
    budget_ = policy.search_budget + kBudgetPerChange * (cluster_.moves() - before);
    if (policy.shrink) Claim(Step::kShrink);
    if (policy.consolidate) Consolidate();
    if (policy.reclaim) Claim(Step::kReclaim);
    if (policy.preempt) Claim(Step::kPreempt);
    // Where victims had only been placed in this cycle their room is free at once: for others too.
    if (!search_.TookFresh()) break;
  }
  Drain();
  if (policy.evict_stale) EvictStale();
  Conclude();
  plan_.steps = cluster_.moves() - moves + placement_.steps() - steps;
  return std::move(plan_);
}

// Whoever was promised room that others were asked to leave gets it, before anybody else can take
// it: otherwise the same victims would be asked again and again.
void Scheduler::Steps::KeepPromises() {
  std::vector<WorkerRef> promised(cluster_.Promised().begin(), cluster_.Promised().end());
  std::stable_sort(promised.begin(), promised.end(), [this](WorkerRef a, WorkerRef b) {
    return cluster_.job(a.job).priority > cluster_.job(b.job).priority;
  });
  for (const auto& ref : promised) {
    const JobState& job = cluster_.job(ref.job);
    if (ref.index >= job.workers.size() || job.workers[ref.index].hint == kNone) continue;
    if (job.workers[ref.index].place.state != WorkerState::kPending || job.on_hold) continue;
    if (AllocateNext(ref.job)) touched_.push_back(ref.job);
  }
  RefreshTouched();
}

void Scheduler::Steps::Allocate() {
  lanes_.Open([this](ClassId id) { return cluster_.MayFit(id, Mode::kFuture); });
  while (const auto next = lanes_.Next()) {
    if (!cluster_.MayFit(next->job_class, Mode::kFuture)) {
      lanes_.SkipClass();
    } else if (AllocateNext(next->job)) {
      touched_.push_back(next->job);
      lanes_.Served(cluster_.job(next->job));
    } else {
      lanes_.SkipJob();
    }
  }
  RefreshTouched();
}

// What a share by memory costs is known only when it has its place; see PlaceWithinBounds.
bool Scheduler::Steps::WithinBounds(const JobState& job, const Piece& piece) const {
  if (piece.estimated) return true;
  return cluster_.queues().WithinLimits(job.queue, piece.cost) &&
         (job.preemptible || cluster_.queues().WithinFixedQuota(job.queue, piece.cost));
}

bool Scheduler::Steps::PlaceWithinBounds(const JobState& job, const Piece& piece, Mode mode) {
  if (!placement_.MayFit(piece, mode)) return false;
  const auto mark = cluster_.mark();
  if (!placement_.Place(piece, mode)) return false;
  if (!piece.estimated ||
      cluster_.queues().HeldWithinBounds(job.queue, piece.cost, !job.preemptible)) {
    return true;
  }
  cluster_.RollbackTo(mark);
  return false;
}

bool Scheduler::Steps::AllocateNext(JobId id) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  cluster_.SetGate(id, Gate::kCapacity);
  for (const auto& piece : pieces_) {
    if (!WithinBounds(job, piece)) continue;
    // Nobody joins a gang that is itself only promised its place.
    const bool promised = std::any_of(job.workers.begin(), job.workers.end(),
                                      [](const Worker& worker) { return worker.place.promised; });
    if (!promised && PlaceWithinBounds(job, piece, Mode::kFree)) return true;
    if (PlaceWithinBounds(job, piece, Mode::kFuture)) return true;
  }
  return false;
}

// After moves the same amount is free as before, so all that the class asks for must be free now.
bool Scheduler::Steps::RoomAfterMoves(const JobClass& job_class) const {
  const auto& nodes = cluster_.nodes();
  for (const auto& need : job_class.needs) {
    const Shape& shape = cluster_.shapes()[need.shape];
    const auto& gpu = shape.spec.request.gpu;
    if (gpu.kind != model::GpuKind::kWhole) continue;
    std::int64_t free = 0;
    for (TypeId type = 0; type < nodes.type_count(); ++type) {
      if (shape.type_rank[type] != kNone) free += nodes.FreeMilli(type, Mode::kFuture);
    }
    if (free < static_cast<std::int64_t>(need.count) * gpu.devices * kMilli) return false;
  }
  return true;
}

void Scheduler::Steps::Consolidate() {
  std::vector<ClassId> tried, chosen;
  const auto count = static_cast<ClassId>(cluster_.class_count());
  for (ClassId i = 0; i < count; ++i) {
    const ClassId id = (next_class_ + i) % count;
    if (!cluster_.UnsettledClass(id) || cluster_.waiting().OfClass(id).empty() ||
        !RoomAfterMoves(cluster_.job_class(id)) || !cluster_.MayFit(id, Mode::kEmptied)) {
      continue;
    }
    if (chosen.size() == kConsolidatedPerCycle) {
      next_class_ = id;
      plan_.complete = false;
      break;
    }
    chosen.push_back(id);
  }
  if (chosen.empty()) return;
  std::sort(chosen.begin(), chosen.end());
  lanes_.Open([&](ClassId id) { return std::binary_search(chosen.begin(), chosen.end(), id); });
  std::int64_t budget = std::max(budget_ / 2, kLeastBudget);
  while (const auto next = lanes_.Next()) {
    if (budget <= 0) {
      plan_.complete = false;
      break;
    }
    const auto before = cluster_.moves() + placement_.steps();
    const bool placed =
        RoomAfterMoves(cluster_.job_class(next->job_class)) && ConsolidateNext(next->job);
    if (!placed) budget -= cluster_.moves() + placement_.steps() - before;
    if (placed) {
      touched_.push_back(next->job);
      lanes_.Served(cluster_.job(next->job));
      continue;
    }
    if (!TooYoung(cluster_.job(next->job))) tried.push_back(next->job_class);
    if (cluster_.job_class(next->job_class).exact) {
      lanes_.SkipClass();  // whose queue it is makes no difference to where there is room
    } else {
      lanes_.SkipJob();
    }
  }
  for (const ClassId id : tried) cluster_.SettleClass(id);
  RefreshTouched();
}

bool Scheduler::Steps::ConsolidateNext(JobId id) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  if (TooYoung(job)) return false;
  for (const auto& piece : pieces_) {
    const auto mark = cluster_.mark();
    if (!WithinBounds(job, piece) || !consolidation_.Place(piece, now_ms_)) continue;
    if (!cluster_.queues().HeldWithinBounds(job.queue, piece.cost, !job.preemptible)) {
      cluster_.RollbackTo(mark);
      continue;
    }
    for (const auto& ref : consolidation_.moved()) {
      causes_[ref] = {id, Rule::kConsolidate};
      touched_.push_back(ref.job);
    }
    return true;
  }
  return false;
}

// What a claimer's own queue must fulfil, whoever the victims are.
bool Scheduler::Steps::MayClaim(Step step, QueueId id, const Vec& cost,
                                std::int64_t priority) const {
  if (step == Step::kPreempt) return cluster_.LowestVictimPriority(id) < priority;
  const auto& queues = cluster_.queues();
  const QueueState& queue = queues[id];
  for (std::size_t d = 0; d < queues.dims(); ++d) {
    if (queue.held[d] + cost[d] > queue.share[d]) return false;
  }
  return true;
}

// The queues in which somebody may claim something in this step: those that changed, and of the
// others whose verdict is open as many as one cycle can afford, going round.
void Scheduler::Steps::ListClaimers(Step step) {
  claimers_.clear();
  const auto& queues = cluster_.queues();
  const auto may_claim = [&](QueueId q) {
    const auto* priorities = cluster_.waiting().PrioritiesIn(q);
    return cluster_.Unsettled(q, step) && priorities != nullptr && !priorities->empty() &&
           MayClaim(step, q, Vec{}, -priorities->begin()->first);
  };
  std::copy_if(changed_.begin(), changed_.end(), std::back_inserter(claimers_), may_claim);
  const auto changed = claimers_.size();
  QueueId& next = next_claimer_[static_cast<std::size_t>(step)];
  const auto count = static_cast<QueueId>(queues.size());
  for (QueueId i = 0; i < count; ++i) {
    const QueueId q = (next + i) % count;
    if (q == 0 || !may_claim(q)) continue;
    if (std::binary_search(changed_.begin(), changed_.end(), q)) continue;
    if (queues.size() > kFewQueues && claimers_.size() - changed == kClaimersPerCycle) {
      next = q;
      plan_.complete = false;
      break;
    }
    claimers_.push_back(q);
  }
}

void Scheduler::Steps::Claim(Step step) {
  ListClaimers(step);
  if (claimers_.empty()) return;
  lanes_.Open(claimers_, [&](const BucketHead& head) {
    const JobClass& asks = cluster_.job_class(head.job_class);
    return MayClaim(step, head.queue, asks.cost, -head.key.minus_priority) &&
           cluster_.MayFit(head.job_class, Mode::kEmptied) && search_.MayHelp(step, head) &&
           !ToBeTriedLater(step, head);
  });
  while (const auto next = lanes_.Next()) {
    if (budget_ <= 0) {
      plan_.complete = false;
      break;
    }
    if (!cluster_.MayFit(next->job_class, Mode::kEmptied)) {
      lanes_.SkipClass();
    } else if (ClaimNext(step, next->job)) {
      touched_.push_back(next->job);
      lanes_.Served(cluster_.job(next->job));
    } else {
      lanes_.SkipJob();
    }
  }
  for (const QueueId queue : claimers_) {
    if (lanes_.Exhausted(queue) && !VerdictMayAge(queue)) cluster_.Settle(queue, step);
  }
  RefreshTouched();
}

bool Scheduler::Steps::ToBeTriedLater(Step step, const BucketHead& head) {
  const auto found = cut_off_.find({head.bucket, step});
  if (found == cut_off_.end() || found->second.until <= cycle_) return false;
  if (!cluster_.policy().search_again_later) return false;
  undecided_.push_back(head.queue);
  plan_.complete = false;
  return true;
}

void Scheduler::Steps::NoteOutcome(Step step, JobId job, Search::Outcome outcome) {
  const std::pair key{cluster_.waiting().bucket_of(job), step};
  if (outcome != Search::Outcome::kNotProven) {
    cut_off_.erase(key);
    return;
  }
  plan_.complete = false;
  cluster_.SetGate(job, Gate::kNotProven);
  CutOff& cut_off = cut_off_[key];
  cut_off.times = std::min(cut_off.times + 1, kMostCutOffs);
  cut_off.until = cycle_ + (std::int64_t{1} << cut_off.times);
}

// Verdicts that time or other queues alone can overturn are not kept.
bool Scheduler::Steps::VerdictMayAge(QueueId queue) const {
  return min_runtimes_ || cluster_.queues()[queue].limited ||
         std::find(undecided_.begin(), undecided_.end(), queue) != undecided_.end();
}

bool Scheduler::Steps::ClaimNext(Step step, JobId id) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  if (step == Step::kShrink && job.Satisfied()) return false;
  if (TooYoung(job)) {
    undecided_.push_back(job.queue);
    return false;
  }
  for (const auto& piece : pieces_) {
    if (!MayClaim(step, job.queue, piece.cost, job.priority)) continue;
    // Room that victims of an earlier claim leave behind costs nobody anything.
    if (WithinBounds(job, piece) && PlaceWithinBounds(job, piece, Mode::kFuture)) return true;
    const auto outcome = search_.Run(step, piece, budget_);
    NoteOutcome(step, id, outcome);
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

void Scheduler::Steps::Evict(const std::vector<WorkerRef>& workers, JobId claimer, Rule rule) {
  for (const auto& ref : workers) {
    cluster_.Leave(ref);
    causes_[ref] = {claimer, rule};
    touched_.push_back(ref.job);
  }
}

// Preemptible workers of draining nodes go elsewhere, or wait; a job that cannot do without them
// goes as a whole. Work that is not preemptible stays until it ends.
void Scheduler::Steps::Drain() {
  for (const NodeId node : cluster_.Draining()) {
    std::vector<WorkerRef> here(cluster_.WorkersOn(node).begin(), cluster_.WorkersOn(node).end());
    std::sort(here.begin(), here.end());
    for (const auto& ref : here) {
      const JobState& job = cluster_.job(ref.job);
      const Place& place = cluster_.worker(ref).place;
      if (!job.preemptible || place.state != WorkerState::kRunning || place.promised) continue;
      VictimUnit unit;
      unit.job = ref.job;
      unit.part = VictimUnit::Part::kWorker;
      unit.index = ref.index;
      std::vector<WorkerRef> leaving = {ref};
      Evict(leaving, ref.job, Rule::kDrain);
      if (!job.Satisfied()) {
        unit.part = VictimUnit::Part::kJob;
        std::vector<WorkerRef> rest;
        VictimList::Workers(cluster_, unit, rest);
        Evict(rest, ref.job, Rule::kDrain);
        leaving.insert(leaving.end(), rest.begin(), rest.end());
      }
      placement_.Rehouse(unit.RehousedAs(), leaving);
    }
  }
  RefreshTouched();
}

void Scheduler::Steps::EvictStale() {
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

void Scheduler::Steps::RefreshTouched() {
  for (const JobId job : touched_) cluster_.RefreshWaiting(job);
  touched_.clear();
}

// A piece that was promised room on which nobody stands any more (those who were to leave it had
// only been placed in this very cycle) starts now, unless others of its job are on their way.
void Scheduler::Steps::StartWhereRoomIsFree() {
  std::map<JobId, bool> ready;
  for (const auto& [ref, before] : changes_) {
    if (!cluster_.worker(ref).place.promised) continue;
    const auto [found, added] = ready.try_emplace(ref.job, true);
    found->second &= before.state == WorkerState::kPending && cluster_.RoomIsFree(ref);
  }
  for (const auto& [ref, before] : changes_) {
    Place place = cluster_.worker(ref).place;
    if (!place.promised || !ready.at(ref.job)) continue;
    place.promised = false;
    cluster_.Move(ref, place);
  }
}

// A job that others of its workers are leaving in this plan starts nobody unless it runs with whom
// it then has: what was meant for it is given out again in the next cycle.
void Scheduler::Steps::TakeBackBrokenStarts() {
  std::map<JobId, std::vector<WorkerRef>> starts, absent;
  for (const auto& [ref, before] : changes_) {
    const Place& now = cluster_.worker(ref).place;
    if (before.state == WorkerState::kRunning && now != before) {
      absent[ref.job].push_back(ref);
    } else if (now.Holds() && now.fresh) {
      (now.promised ? absent : starts)[ref.job].push_back(ref);
    }
  }
  for (const auto& [job, started] : starts) {
    if (!absent.contains(job)) continue;
    const auto mark = cluster_.mark();
    for (const auto& ref : absent[job]) cluster_.Move(ref, Place{});
    const bool runs = cluster_.job(job).Satisfied();
    cluster_.RollbackTo(mark);
    if (runs) continue;
    for (const auto& ref : started) cluster_.Move(ref, Place{});
  }
}

// How many workers of a leaf group were there before those that start now.
void Scheduler::Steps::CountStarts() {
  there_before_.clear();
  for (const auto& [ref, before] : changes_) {
    const Place& now = cluster_.worker(ref).place;
    if (before.state == WorkerState::kRunning || now.state != WorkerState::kRunning) continue;
    if (now.promised) continue;
    const auto group = cluster_.worker(ref).group;
    const auto active = cluster_.job(ref.job).groups[group].active;
    --there_before_.try_emplace({ref.job, group}, active).first->second;
  }
}

// Turns what was tried into what is: starts are started, victims are leaving, promises are hints.
void Scheduler::Steps::Conclude() {
  cluster_.ListChanges(changes_);
  StartWhereRoomIsFree();
  TakeBackBrokenStarts();
  CountStarts();
  for (const auto& [ref, before] : changes_) {
    const Place now = cluster_.worker(ref).place;
    if (now == before) continue;
    touched_.push_back(ref.job);
    if (before.state == WorkerState::kRunning) {
      ConcludeVictim(ref, before, now);
    } else if (now.state == WorkerState::kRunning) {
      ConcludeStart(ref, before, now);
    }
  }
  RefreshTouched();
  if (!cluster_.policy().keep_promises) hints_.clear();
  cluster_.SetHints(hints_);
  cluster_.ForgetLog();
  for (const auto& [ref, before] : changes_) {
    const JobState& job = cluster_.job(ref.job);
    if (job.stale_since_ms >= 0 && job.Satisfied()) cluster_.SetStaleSince(ref.job, -1);
  }
}

void Scheduler::Steps::ConcludeStart(WorkerRef ref, const Place& before, const Place& now) {
  const NodeId node = cluster_.nodes().bank(now.bank).node;
  if (now.promised) {
    plan_.promises.push_back({ref.job, ref.index, node});
    hints_.emplace_back(ref, now.bank);
    cluster_.Move(ref, before);
    return;
  }
  Place started = now;
  started.fresh = false;
  cluster_.Move(ref, started);
  cluster_.SetStarted(ref, now_ms_);
  const auto group = cluster_.worker(ref).group;
  auto& there = there_before_[{ref.job, group}];
  const bool grows = there >= cluster_.job(ref.job).groups[group].minimum;
  ++there;
  Action action;
  action.kind = grows ? ActionKind::kGrow : ActionKind::kStart;
  action.job = ref.job;
  action.worker = ref.index;
  action.node = node;
  action.devices = now.devices;
  action.cause = ref.job;
  plan_.actions.push_back(action);
}

void Scheduler::Steps::ConcludeVictim(WorkerRef ref, const Place& before, const Place& now) {
  const JobState& job = cluster_.job(ref.job);
  const Cause cause = causes_.at(ref);
  Action action;
  action.rule = cause.rule;
  action.cause = cause.claimer;
  action.job = ref.job;
  action.worker = ref.index;
  action.node = cluster_.nodes().bank(before.bank).node;
  action.devices = before.devices;
  if (now.promised) {
    action.rule = Rule::kConsolidate;
    action.kind = ActionKind::kMove;
    action.to_node = cluster_.nodes().bank(now.bank).node;
    hints_.emplace_back(ref, now.bank);
  } else {
    action.kind = job.Satisfied() ? ActionKind::kShrink : ActionKind::kPause;
    const auto lost = cluster_.LostWorkMs(job, before.charge_milli, now_ms_);
    action.lost_gpu_ms =
        action.kind == ActionKind::kShrink ? std::min<std::int64_t>(lost, 0) : lost;
  }
  Place leaving = before;
  leaving.state = WorkerState::kLeaving;
  cluster_.Move(ref, leaving);
  plan_.actions.push_back(action);
}

}  // namespace muster::engine

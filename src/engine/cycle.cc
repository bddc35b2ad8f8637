#include "engine/cycle.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "engine/cycle_steps.h"

namespace muster::engine {

using model::Gate;
using model::Plan;
using model::Rule;

namespace {

constexpr std::int64_t kBudgetPerChange = 4;      // what a placed worker adds to the search budget
constexpr std::size_t kConsolidatedPerCycle = 8;  // job classes that are looked at
constexpr int kWaves = 12;                        // rounds of a cycle that undoes its own starts

}  // namespace

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
  cluster_.BeginCycle();
  cluster_.DivideShares();
  const auto moves = cluster_.moves(), steps = placement_.steps();
  if (policy.keep_promises) KeepPromises();
  NoteBookings();
  if (policy.by_goodput && policy.grow && resizing_.Due(now_ms)) Resize();
  reserved_.clear();
  Book();
  for (int wave = 0; wave < kWaves; ++wave) {
    search_.BeginCycle(now_ms);
    const auto before = cluster_.moves();
    if (policy.reserve && wave == 0) Reserve();
    if (wave == 0) NoteReservations();
    Allocate();
    KeepNoRoom();
    cluster_.Unsettle();
    cluster_.TakeChangedQueues(changed_);
    budget_ = policy.search_budget + kBudgetPerChange * (cluster_.moves() - before);
    if (policy.shrink) Claim(Step::kShrink);
    if (policy.consolidate) Consolidate();
    if (policy.reclaim) Claim(Step::kReclaim);
    if (policy.preempt) Claim(Step::kPreempt);
    // Where victims had only been placed in this cycle their room is free at once: for others too.
    KeepNoRoom();
    if (!search_.TookFresh()) break;
  }
  Drain();
  TakeBooked();
  if (policy.evict_stale) EvictStale();
  Conclude();
  plan_.steps = cluster_.moves() - moves + placement_.steps() - steps;
  return std::move(plan_);
}

// Whoever was promised room that others were asked to leave gets it, before anybody else can take
// it: otherwise the same victims would be asked again and again. Beside what is reserved, where
// there is other room: it was promised a bank, and no devices.
void Scheduler::Steps::KeepPromises() {
  std::vector<WorkerRef> promised(cluster_.Promised().begin(), cluster_.Promised().end());
  if (promised.empty()) return;
  KeepLastReserved();
  std::stable_sort(promised.begin(), promised.end(), [this](WorkerRef a, WorkerRef b) {
    return cluster_.job(a.job).priority > cluster_.job(b.job).priority;
  });
  for (const auto& ref : promised) {
    const JobState& job = cluster_.job(ref.job);
    if (ref.index >= job.workers.size() || job.workers[ref.index].hint == kNone) continue;
    if (job.workers[ref.index].place.state != WorkerState::kPending || job.on_hold) continue;
    // A job that was moved to another GPU type begins there.
    const BankId hint = job.workers[ref.index].hint;
    if (cluster_.KeepsToType(ref.job)) placement_.KeepTo(cluster_.nodes().bank(hint).type);
    KeepRoomFrom(ref.job);
    auto answer = AllocateNext(ref.job);
    if (answer != Answer::kServed) {
      KeepNoRoom();
      answer = AllocateNext(ref.job);
    }
    if (answer == Answer::kServed) touched_.push_back(ref.job);
    placement_.KeepTo(kNone);
  }
  KeepNoRoom();
  RefreshTouched();
}

// Jobs that report their speed get the sizes that pay best.
void Scheduler::Steps::Resize() {
  Book();
  bool foreseen = !cluster_.policy().reserve;
  resizing_.Run(now_ms_, [&](std::span<const JobId> jobs) {
    if (!std::exchange(foreseen, true)) Foresee();
    return KeepRoomFromAll(jobs);
  });
  KeepNoRoom();
  for (const auto& [ref, whom] : resizing_.told()) causes_[ref] = {whom, Rule::kResize};
  touched_.insert(touched_.end(), resizing_.changed().begin(), resizing_.changed().end());
  RefreshTouched();
}

void Scheduler::Steps::Allocate() {
  lanes_.Open([this](ClassId id) { return cluster_.MayFit(id, Mode::kFuture); });
  while (const auto next = lanes_.Next()) {
    KeepRoomFrom(next->job);
    if (cluster_.MayFit(next->job_class, Mode::kFuture)) {
      GoOn(next->job, BehindReservation(next->job, AllocateNext(next->job)));
    } else {
      FindsNoRoom(next->job, next->job_class);
    }
  }
  RefreshTouched();
}

// Tells the lanes what became of the job that they named.
void Scheduler::Steps::GoOn(JobId job, Answer answer) {
  if (answer == Answer::kServed) {
    touched_.push_back(job);
    lanes_.Served(cluster_.job(job));
  } else if (answer == Answer::kNotThis) {
    lanes_.SkipJob();
  } else {
    lanes_.SkipEquals();
  }
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

Scheduler::Steps::Answer Scheduler::Steps::AllocateNext(JobId id) {
  placement_.NextPieces(id, pieces_);
  if (pieces_.empty()) return Answer::kNotThis;
  const JobState& job = cluster_.job(id);
  cluster_.SetGate(id, Gate::kCapacity);
  for (const auto& piece : pieces_) {
    if (!WithinBounds(job, piece)) continue;
    // Nobody joins a gang that is itself only promised its place.
    const bool promised = std::any_of(job.workers.begin(), job.workers.end(),
                                      [](const Worker& worker) { return worker.place.promised; });
    if (!promised && PlaceWithinBounds(job, piece, Mode::kFree)) return Answer::kServed;
    if (PlaceWithinBounds(job, piece, Mode::kFuture)) return Answer::kServed;
  }
  return cluster_.KeepsToType(id) ? Answer::kNotThis : Answer::kNoRoom;
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
  KeepNoRoom();
  std::vector<ClassId> tried, chosen;
  const auto count = static_cast<ClassId>(cluster_.class_count());
  for (ClassId i = 0; i < count; ++i) {
    const ClassId id = (next_class_ + i) % count;
    if (!cluster_.UnsettledClass(id) || !cluster_.waiting().AnyOf(id) ||
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
  std::int64_t budget = std::max(budget_ / 2, cluster_.policy().search_budget);
  while (const auto next = lanes_.Next()) {
    if (budget <= 0) {
      plan_.complete = false;
      break;
    }
    const auto before = cluster_.moves() + placement_.steps();
    const JobClass& job_class = cluster_.job_class(next->job_class);
    const bool kept = KeepRoomFrom(next->job);
    const Answer answer = RoomAfterMoves(job_class) ? ConsolidateNext(next->job) : Answer::kNoRoom;
    if (answer != Answer::kServed) budget -= cluster_.moves() + placement_.steps() - before;
    if (answer == Answer::kNoRoom || answer == Answer::kNotHere) tried.push_back(next->job_class);
    if (kept && answer == Answer::kNoRoom) {
      GoOn(next->job, BehindReservation(next->job, answer));
    } else if (answer == Answer::kNoRoom && job_class.exact) {
      lanes_.SkipClass();  // whose queue it is makes no difference to where there is room
    } else {
      GoOn(next->job, answer);
    }
  }
  for (const ClassId id : tried) cluster_.SettleClass(id);
  RefreshTouched();
}

Scheduler::Steps::Answer Scheduler::Steps::ConsolidateNext(JobId id) {
  placement_.NextPieces(id, pieces_);
  const JobState& job = cluster_.job(id);
  if (pieces_.empty() || TooYoung(job)) return Answer::kNotThis;
  Answer answer = Answer::kNotHere;
  for (const auto& piece : pieces_) {
    const auto mark = cluster_.mark();
    if (!WithinBounds(job, piece)) continue;
    if (!consolidation_.Place(piece, now_ms_)) {
      answer = Answer::kNoRoom;
      continue;
    }
    if (!cluster_.queues().HeldWithinBounds(job.queue, piece.cost, !job.preemptible)) {
      cluster_.RollbackTo(mark);
      continue;
    }
    for (const auto& ref : consolidation_.moved()) {
      causes_[ref] = {id, Rule::kConsolidate};
      touched_.push_back(ref.job);
    }
    return Answer::kServed;
  }
  return answer;
}

void Scheduler::Steps::Evict(const std::vector<WorkerRef>& workers, JobId claimer, Rule rule) {
  for (const auto& ref : workers) {
    cluster_.Leave(ref);
    causes_[ref] = {claimer, rule};
    touched_.push_back(ref.job);
  }
}

// The worker leaves, and where its job cannot do without it the job as a whole; elsewhere, if there
// is room and they are to be given some at once.
void Scheduler::Steps::SendAway(WorkerRef ref, Rule rule, bool rehouse) {
  const JobState& job = cluster_.job(ref.job);
  VictimUnit unit;
  unit.job = ref.job;
  unit.part = VictimUnit::Part::kWorker;
  unit.index = ref.index;
  std::vector<WorkerRef> leaving = {ref};
  Evict(leaving, ref.job, rule);
  if (!job.Satisfied()) {
    unit.part = VictimUnit::Part::kJob;
    std::vector<WorkerRef> rest;
    VictimList::Workers(cluster_, unit, rest);
    Evict(rest, ref.job, rule);
    leaving.insert(leaving.end(), rest.begin(), rest.end());
  }
  if (rehouse) placement_.Rehouse(unit.RehousedAs(), leaving);
}

// Preemptible workers of draining nodes go elsewhere, or wait. Work that is not preemptible stays
// until it ends.
void Scheduler::Steps::Drain() {
  for (const NodeId node : cluster_.Draining()) {
    std::vector<WorkerRef> here(cluster_.WorkersOn(node).begin(), cluster_.WorkersOn(node).end());
    std::sort(here.begin(), here.end());
    for (const auto& ref : here) {
      const Place& place = cluster_.worker(ref).place;
      if (!cluster_.job(ref.job).preemptible || place.state != WorkerState::kRunning ||
          place.promised) {
        continue;
      }
      SendAway(ref, Rule::kDrain, true);
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

}  // namespace muster::engine

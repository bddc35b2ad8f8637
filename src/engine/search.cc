#include "engine/search.h"

#include <algorithm>
#include <bit>
#include <set>

#include "engine/order.h"

namespace muster::engine {

using model::Rule;

namespace {

constexpr std::size_t kPoolJobs = 500;  // jobs whose units are listed
constexpr std::size_t kSmallPool = 32;  // units that are all taken away for a trial
constexpr std::uint32_t kTurnOfOthers =
    8;  // every so often those are listed who else would never be

bool Above(const Vec& held, const Vec& bound, std::size_t dims) {
  for (std::size_t d = 0; d < dims; ++d) {
    if (held[d] > bound[d]) return true;
  }
  return false;
}

bool WithinWith(const Vec& held, const Vec& adds, const Vec& bound, std::size_t dims) {
  for (std::size_t d = 0; d < dims; ++d) {
    if (held[d] + adds[d] > bound[d]) return false;
  }
  return true;
}

}  // namespace

void Search::BeginCycle(std::int64_t now_ms) {
  now_ms_ = now_ms;
  took_fresh_ = false;
  ++rounds_;
  for (auto& pool : pools_) pool.built = false;
}

bool Search::MayTake(QueueId claimer, QueueId victim, const Vec& adds, Rule& rule) const {
  const auto& queues = cluster_.queues();
  const auto [ours, theirs] = queues.Part(claimer, victim);
  const auto dims = queues.dims();
  const auto above = [&](const Vec& bound) {  // in something that the claimer asks for
    for (std::size_t d = 0; d < dims; ++d) {
      const bool asked = adds[d] > 0 || !cluster_.policy().reclaim_by_resource;
      if (asked && queues[theirs].held[d] > bound[d]) return true;
    }
    return false;
  };
  rule = Rule::kReclaimShare;
  if (above(queues[theirs].share)) return true;
  rule = Rule::kReclaimQuota;
  return above(queues[theirs].guaranteed) &&
         WithinWith(queues[ours].held, adds, queues[ours].guaranteed, dims);
}

void Search::Build(Pool& pool, bool above_quota, bool surplus_only) {
  const auto& queues = cluster_.queues();
  std::vector<std::pair<Saturation, QueueId>> chosen;  // a heap, the most saturated on top
  std::vector<bool> over(queues.size(), false);
  for (const QueueId q : queues.widest_first()) {
    if (q == 0) continue;
    over[q] = cluster_.AboveShare(q);
    if (above_quota && !over[q]) {
      over[q] =
          over[queues[q].parent] || Above(queues[q].held, queues[q].guaranteed, queues.dims());
    }
    if (!over[q]) continue;
    if (surplus_only ? cluster_.SurplusIn(q) == 0 : cluster_.RunningIn(q).empty()) continue;
    const auto held = queues[q].held[kGpuDim];  // nothing of nothing is not saturated
    chosen.emplace_back(Saturation{held, held == 0 ? 1 : queues[q].share[kGpuDim]}, q);
  }
  const auto asked_later = [](const auto& a, const auto& b) {
    if (a.first.LessThan(b.first)) return true;
    return !b.first.LessThan(a.first) && a.second > b.second;
  };
  std::make_heap(chosen.begin(), chosen.end(), asked_later);
  const auto pass = [&] {
    std::pop_heap(chosen.begin(), chosen.end(), asked_later);
    const QueueId queue = chosen.back().second;
    chosen.pop_back();
    return queue;
  };
  const bool others = rounds_ % kTurnOfOthers == 0;
  const auto passed = others ? std::min(pool.passed, chosen.size()) : 0;
  for (std::size_t i = 0; i < passed; ++i) pass();
  std::vector<QueueId> asked;
  for (std::size_t jobs = 0; jobs < kPoolJobs && !chosen.empty();) {
    asked.push_back(pass());
    jobs += cluster_.RunningIn(asked.back()).size();
  }
  if (others) pool.passed = chosen.empty() ? 0 : passed + asked.size();
  pool.list.Build(running_, asked, now_ms_, surplus_only);
  pool.built = true;
  pool.whole = chosen.empty() && passed == 0;
  visited_ += static_cast<std::int64_t>(pool.list.size()) / 4;
  FindWhomItHelps(pool);
}

// A claimer that would end above its quota at every level can take only from who is above its
// share.
Search::Pool& Search::PoolFor(QueueId claimer, const Vec& adds) {
  const auto& queues = cluster_.queues();
  bool within = false;
  for (QueueId q = claimer; q != 0; q = queues[q].parent) {
    within |= WithinWith(queues[q].held, adds, queues[q].guaranteed, queues.dims());
  }
  const bool surplus_only = step_ == Step::kShrink;
  Pool& pool = pools_[(within ? 1U : 0U) + (surplus_only ? 2U : 0U)];
  if (!pool.built) Build(pool, within, surplus_only);
  return pool;
}

void Search::FindWhomItHelps(Pool& pool) {
  pool.helps.clear();
  if (!pool.whole || pool.list.size() > kSmallPool) return;
  const auto mark = cluster_.mark();
  for (const auto& unit : pool.list.units()) {
    VictimList::Workers(cluster_, unit, workers_);
    for (const auto& ref : workers_) cluster_.Move(ref, Place{});
  }
  for (ClassId id = 0; id < cluster_.class_count(); ++id) {
    pool.helps.push_back(cluster_.waiting().AnyOf(id) && cluster_.MayFit(id, Mode::kFuture));
  }
  cluster_.RollbackTo(mark);
}

bool Search::MayHelp(Step step, const BucketHead& claimer) {
  if (step == Step::kPreempt) return true;
  step_ = step;
  const Vec& cost = cluster_.job_class(claimer.job_class).cost;
  const Pool& pool = PoolFor(claimer.queue, cost);
  if (pool.helps.empty()) return pool.list.size() > 0;
  const auto units = pool.list.units();
  return pool.helps[claimer.job_class] &&
         std::any_of(units.begin(), units.end(), [&](const VictimUnit& unit) {
           Rule rule{};
           const QueueId victim = cluster_.job(unit.job).queue;
           return victim != claimer.queue && MayTake(claimer.queue, victim, cost, rule);
         });
}

bool Search::Protected(const VictimUnit& unit, const JobState& claimer) const {
  const JobState& job = cluster_.job(unit.job);
  if (&job == &claimer) return true;
  if (step_ == Step::kPreempt && job.priority >= claimer.priority) return true;
  const auto& spec = cluster_.queues().spec(job.queue);
  const auto least =
      step_ == Step::kPreempt ? spec.preempt_min_runtime_ms : spec.reclaim_min_runtime_ms;
  if (least == 0) return false;
  std::int64_t since = now_ms_;
  for (const auto& worker : job.workers) {
    if (worker.place.Holds()) since = std::min(since, worker.started_ms);
  }
  return now_ms_ - since < least;
}

// Whether any of the nodes could take a worker of the piece once its preemptible workers were gone,
// or the workers count against a limit that leaves no room for the piece.
bool Search::Helps(const Piece& piece, const std::vector<WorkerRef>& workers) const {
  const JobState& job = cluster_.job(piece.job);
  if (!cluster_.queues().WithinLimits(job.queue, piece.cost)) return true;
  ShapeId last = kNone;
  for (const auto index : piece.workers) {
    const ShapeId shape = job.workers[index].shape;
    if (shape == last) continue;
    last = shape;
    for (const auto& ref : workers) {
      const NodeId node = cluster_.nodes().bank(cluster_.worker(ref).place.bank).node;
      const auto& state = cluster_.nodes().node(node);
      for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
        if (cluster_.shapes().SlotsOn(cluster_.shapes()[shape], b, Mode::kEmptied) > 0) return true;
      }
    }
  }
  return false;
}

// Whether the next allocation would leave the place with the claimer, had these workers left.
bool Search::FairToTake(const Piece& piece, QueueId victim,
                        const std::vector<WorkerRef>& workers) const {
  const auto& queues = cluster_.queues();
  const auto [ours, theirs] = queues.Part(cluster_.job(piece.job).queue, victim);
  Vec held = queues[theirs].held, cost;
  for (const auto& ref : workers) {
    held.Subtract(cluster_.CostOf(ref), queues.dims());
    cost.Add(cluster_.shapes()[cluster_.worker(ref).shape].cost, queues.dims());
  }
  return !ServedBefore(RankOf(queues, theirs, held, cost),
                       RankOf(queues, ours, queues[ours].held, piece.cost));
}

// A claim above the claimer's quota must bring both sides closer to their shares in sum: a queue a
// little above its share does not lose a large job for a small one, which would only make it the
// next claimer. Nor does anybody's job pause for one that runs and only wants to grow.
bool Search::InProportion(const Piece& piece, const VictimUnit& unit,
                          const std::vector<WorkerRef>& workers) const {
  const auto& queues = cluster_.queues();
  const JobState& claimer = cluster_.job(piece.job);
  const auto [ours, theirs] = queues.Part(claimer.queue, cluster_.job(unit.job).queue);
  if (WithinWith(queues[ours].held, piece.cost, queues[ours].guaranteed, queues.dims()))
    return true;
  if (claimer.Satisfied() && unit.part == VictimUnit::Part::kJob) return false;
  for (std::size_t d = 0; d < queues.dims(); ++d) {
    const auto excess = queues[theirs].held[d] - queues[theirs].share[d];
    if (piece.cost[d] == 0 || excess <= 0) continue;
    std::int64_t loss = 0;
    for (const auto& ref : workers) loss += cluster_.CostOf(ref)[d];
    if (loss < 2 * excess + piece.cost[d]) return true;
  }
  return false;
}

void Search::Take(const VictimUnit& unit, Rule rule, const std::vector<WorkerRef>& workers) {
  Taken taken;
  taken.unit = unit;
  taken.rule = rule;
  for (const auto& ref : workers) {
    taken.before.emplace_back(ref, cluster_.worker(ref).place);
    cluster_.Leave(ref);
  }
  taken_.push_back(std::move(taken));
}

Search::Outcome Search::Run(Step step, const Piece& piece, std::int64_t& budget) {
  taken_.clear();
  step_ = step;
  piece_ = &piece;
  held_before_ = cluster_.queues()[cluster_.job(piece.job).queue].held;
  const JobState& claimer = cluster_.job(piece.job);
  const auto before = Spent();
  bool whole = true;
  list_ = &own_;
  if (step == Step::kPreempt) {
    const QueueId queue[] = {claimer.queue};
    own_.Build(running_, queue, now_ms_, false);
    visited_ += static_cast<std::int64_t>(own_.size()) / 4;
  } else {
    Pool& pool = PoolFor(claimer.queue, piece.cost);
    list_ = &pool.list;
    whole = pool.whole;
  }
  Outcome outcome = Walk(piece, *list_);
  if (outcome == Outcome::kNotProven) outcome = WalkBanks(piece);
  if (outcome == Outcome::kNobody && !whole) outcome = Outcome::kNotProven;
  if (outcome != Outcome::kFound) budget -= Spent() - before;
  for (const auto& taken : taken_) took_fresh_ |= taken.before[0].second.fresh;
  return outcome;
}

// Lists are made once; a job may have given up more than its surplus since.
bool Search::StillSpare(const VictimUnit& unit) const {
  if (unit.part == VictimUnit::Part::kJob) return true;
  const JobState& job = cluster_.job(unit.job);
  if (unit.part == VictimUnit::Part::kWorker) {
    const GroupState& leaf = job.groups[job.workers[unit.index].group];
    return leaf.active > leaf.minimum;
  }
  const GroupState& parent = job.groups[job.groups[unit.index].parent];
  return !job.groups[unit.index].Satisfied() || parent.satisfied > parent.minimum;
}

// Whether the claimer has the right to the unit, by which rule, and could keep what it leaves. On
// return workers_ are those of the unit.
bool Search::MayTakeUnit(const Piece& piece, const VictimUnit& unit, Rule& rule) {
  const JobState& claimer = cluster_.job(piece.job);
  if (Protected(unit, claimer)) return false;
  rule = Rule::kPreempt;
  const QueueId victim = cluster_.job(unit.job).queue;
  if ((victim == claimer.queue) != (step_ == Step::kPreempt)) return false;
  if (step_ != Step::kPreempt && !MayTake(claimer.queue, victim, piece.cost, rule)) return false;
  VictimList::Workers(cluster_, unit, workers_);
  return !workers_.empty() && StillSpare(unit) && Helps(piece, workers_) &&
         (step_ == Step::kPreempt ||
          ((!cluster_.policy().reclaim_in_proportion || InProportion(piece, unit, workers_)) &&
           FairToTake(piece, victim, workers_)));
}

// Takes units in order until the piece fits and all conditions hold.
Search::Outcome Search::Walk(const Piece& piece, VictimList& list) {
  const auto start = cluster_.mark();
  const auto limit = Spent() + cluster_.policy().search_walk;
  Outcome outcome = Outcome::kNobody;
  for (std::size_t i = 0; const VictimUnit* unit = list.At(i); ++i) {
    if (Spent() > limit) {
      outcome = Outcome::kNotProven;
      break;
    }
    ++visited_;
    Rule rule{};
    if (!MayTakeUnit(piece, *unit, rule)) continue;
    Take(*unit, rule, workers_);
    if (!placement_.MayFit(piece, Mode::kFuture)) continue;
    const auto mark = cluster_.mark();
    const auto taken = taken_;
    unfair_ = {};
    if (placement_.Place(piece, Mode::kFuture) && Conclude(piece)) return Outcome::kFound;
    cluster_.RollbackTo(mark);
    taken_ = taken;
    SpareUnfair(piece);
  }
  cluster_.RollbackTo(start);
  taken_.clear();
  return outcome;
}

bool Search::Conclude(const Piece& piece) {
  claimed_ = placement_.placed();
  LetGo(piece);
  MoveElsewhere(piece);
  if (!WithinBounds(piece)) return false;
  if (step_ == Step::kPreempt) return !RisesAboveShare(piece);
  const auto unfair = FindUnfair(piece);
  if (!unfair) return true;
  unfair_ = taken_[*unfair].unit;
  return false;
}

// A preemption swaps jobs inside a queue; it does not lift the queue above its share, where the
// next cycle would take back what it got.
bool Search::RisesAboveShare(const Piece& piece) const {
  if (!cluster_.policy().preempt_within_share) return false;
  const QueueState& queue = cluster_.queues()[cluster_.job(piece.job).queue];
  for (std::size_t d = 0; d < cluster_.queues().dims(); ++d) {
    if (piece.cost[d] == 0 || queue.held[d] <= queue.share[d]) continue;
    if (queue.held[d] > held_before_[d]) return true;
  }
  return false;
}

// Whoever it was not fair to take stays; otherwise the next trial would only end with it again.
void Search::SpareUnfair(const Piece& piece) {
  const auto found = std::find_if(taken_.begin(), taken_.end(), [this](const Taken& taken) {
    return taken.unit.job == unfair_.job && taken.unit.turn == unfair_.turn;
  });
  if (found != taken_.end() && TryLetGo(piece, *found, false)) taken_.erase(found);
}

// The old place is still there: nobody was promised it.
bool Search::CanReturn(WorkerRef ref, const Place& place) const {
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  const Bank& bank = cluster_.nodes().bank(place.bank);
  if (!cluster_.nodes().HostFits(bank.node, shape.host, Mode::kFuture)) return false;
  const auto open = bank.unoccupied[static_cast<std::size_t>(Mode::kFuture)];
  if (shape.spec.request.gpu.kind == model::GpuKind::kWhole) return (place.devices & ~open) == 0;
  const auto units = cluster_.shapes().UnitsOn(shape, bank);
  for (std::uint64_t rest = place.devices; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (cluster_.nodes().Room(place.bank, index, Mode::kFuture) < units) return false;
  }
  return true;
}

// Gives the unit its place back; with `anew` the piece may go elsewhere for it.
bool Search::TryLetGo(const Piece& piece, const Taken& taken, bool anew) {
  const auto mark = cluster_.mark();
  const auto bring_back = [&] {
    for (const auto& [ref, place] : taken.before) {
      if (!CanReturn(ref, place)) return false;
      cluster_.Move(ref, place);
    }
    // A worker above the minimum stays only if the rest of its job does.
    return taken.unit.part == VictimUnit::Part::kJob ||
           std::all_of(taken.before.begin(), taken.before.end(),
                       [this](const auto& entry) { return Runs(entry.first); });
  };
  if (bring_back() && WithinBounds(piece)) return true;
  cluster_.RollbackTo(mark);
  if (!anew) return false;
  for (const auto& ref : claimed_) cluster_.Move(ref, Place{});
  if (bring_back() && placement_.Place(piece, Mode::kFuture) && WithinBounds(piece)) {
    claimed_ = placement_.placed();
    return true;
  }
  cluster_.RollbackTo(mark);
  return false;
}

// Whether the worker's group, and every group above it, runs.
bool Search::Runs(WorkerRef ref) const {
  const JobState& job = cluster_.job(ref.job);
  for (std::uint32_t g = job.workers[ref.index].group; g != kNone; g = job.groups[g].parent) {
    if (!job.groups[g].Satisfied()) return false;
  }
  return true;
}

// Gives those workers of the job their places back that are not needed, if it runs with them.
void Search::LetGoPart(const Piece& piece, JobId job) {
  const auto mark = cluster_.mark();
  std::vector<WorkerRef> back;
  for (const auto& taken : taken_) {
    if (taken.unit.job != job) continue;
    for (const auto& [ref, place] : taken.before) {
      if (!CanReturn(ref, place)) continue;
      cluster_.Move(ref, place);
      back.push_back(ref);
    }
  }
  for (bool again = true; again;) {  // who came back to a group that does not run leaves again
    again = std::erase_if(back, [this](WorkerRef ref) {
              if (Runs(ref)) return false;
              cluster_.Leave(ref);
              return true;
            }) > 0;
  }
  if (back.empty() || !WithinBounds(piece)) {
    cluster_.RollbackTo(mark);
    return;
  }
  for (auto& taken : taken_) {
    std::erase_if(taken.before, [&](const auto& entry) {
      return std::find(back.begin(), back.end(), entry.first) != back.end();
    });
  }
}

// First those whose places the piece does not use, then those it could do without; the most
// valuable first, which was taken last.
void Search::LetGo(const Piece& piece) {
  for (const bool anew : {false, true}) {
    for (std::size_t i = taken_.size(); i-- > 0;) {
      if (!TryLetGo(piece, taken_[i], anew)) continue;
      taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::set<JobId> jobs;
  for (const auto& taken : taken_) jobs.insert(taken.unit.job);
  for (const JobId job : jobs) LetGoPart(piece, job);
  std::erase_if(taken_, [](const Taken& taken) { return taken.before.empty(); });
}

void Search::MoveElsewhere(const Piece& claim) {
  if (!cluster_.policy().victims_may_move) return;
  for (std::size_t i = taken_.size(); i-- > 0;) {
    Taken& taken = taken_[i];
    workers_.clear();
    for (const auto& [ref, place] : taken.before) {
      if (!place.fresh) workers_.push_back(ref);
    }
    const auto mark = cluster_.mark();
    taken.moved = placement_.Rehouse(taken.unit.RehousedAs(), workers_) > 0 &&
                  cluster_.job(taken.unit.job).Satisfied() && WithinBounds(claim);
    if (!taken.moved) cluster_.RollbackTo(mark);
  }
}

// Limits and, for work that is not preemptible, quotas; on the state that the plan leads to.
bool Search::WithinBounds(const Piece& piece) const {
  const JobState& job = cluster_.job(piece.job);
  return cluster_.queues().HeldWithinBounds(job.queue, piece.cost, !job.preemptible);
}

// A claimer that ends above its share must not end as saturated as the sibling it took from.
bool Search::EndsLessSaturated(const Piece& piece, QueueId ours, QueueId theirs) const {
  const auto& queues = cluster_.queues();
  const QueueState &a = queues[ours], &b = queues[theirs];
  for (std::size_t d = 0; d < queues.dims(); ++d) {
    if (piece.cost[d] == 0 || a.held[d] <= a.share[d]) continue;
    const Saturation left{a.held[d], a.share[d]}, right{b.held[d], b.share[d]};
    if (!left.LessThan(right)) return false;
  }
  return true;
}

// The first of taken_ that it is not fair to take: its sibling would end less saturated than the
// claimer's, or the next allocation would hand the place straight back. None: all is fair.
std::optional<std::size_t> Search::FindUnfair(const Piece& piece) {
  const auto& queues = cluster_.queues();
  const QueueId claimer = cluster_.job(piece.job).queue;
  const auto part = [&](const Taken& taken) {
    return queues.Part(claimer, cluster_.job(taken.unit.job).queue);
  };
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const auto [ours, theirs] = part(taken_[i]);
    if (!taken_[i].moved && !EndsLessSaturated(piece, ours, theirs)) return i;
  }
  const auto mark = cluster_.mark();
  for (const auto& ref : claimed_) cluster_.Move(ref, Place{});
  std::optional<std::size_t> unfair;
  for (std::size_t i = 0; i < taken_.size() && !unfair; ++i) {
    if (taken_[i].moved) continue;
    const auto [ours, theirs] = part(taken_[i]);
    Vec cost;
    for (const auto& [ref, place] : taken_[i].before) {
      cost.Add(cluster_.shapes()[cluster_.worker(ref).shape].cost, queues.dims());
    }
    if (ServedBefore(RankOf(queues, theirs, queues[theirs].held, cost),
                     RankOf(queues, ours, queues[ours].held, piece.cost))) {
      unfair = i;
    }
  }
  cluster_.RollbackTo(mark);
  return unfair;
}

}  // namespace muster::engine

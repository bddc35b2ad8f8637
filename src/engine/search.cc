#include "engine/search.h"

#include <algorithm>
#include <bit>

#include "engine/order.h"

namespace muster::engine {

using model::Rule;

namespace {

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
  for (auto& pool : pools_) pool.built = false;
}

bool Search::MayTake(QueueId claimer, QueueId victim, const Vec& adds, Rule& rule) const {
  const auto& queues = cluster_.queues();
  const auto [ours, theirs] = queues.Part(claimer, victim);
  const auto dims = queues.dims();
  rule = Rule::kReclaimShare;
  if (Above(queues[theirs].held, queues[theirs].share, dims)) return true;
  rule = Rule::kReclaimQuota;
  return Above(queues[theirs].held, queues[theirs].guaranteed, dims) &&
         WithinWith(queues[ours].held, adds, queues[ours].guaranteed, dims);
}

void Search::Build(Pool& pool, bool above_quota) {
  const auto& queues = cluster_.queues();
  std::vector<QueueId> chosen;
  for (const auto bank : pool.banks) pool.gpus[bank] = 0;
  pool.banks.clear();
  pool.slots.clear();
  pool.surplus = 0;
  pool.gpus.resize(cluster_.nodes().bank_count(), 0);
  for (QueueId leaf = 1; leaf < queues.size(); ++leaf) {
    if (cluster_.RunningIn(leaf).empty()) continue;
    bool above = false;
    for (QueueId q = leaf; q != 0 && !above; q = queues[q].parent) {
      above = Above(queues[q].held, queues[q].share, queues.dims()) ||
              (above_quota && Above(queues[q].held, queues[q].guaranteed, queues.dims()));
    }
    if (!above) continue;
    chosen.push_back(leaf);
    pool.surplus += cluster_.SurplusIn(leaf);
    for (const JobId id : cluster_.RunningIn(leaf)) {
      if (!cluster_.job(id).preemptible) continue;
      for (const auto& worker : cluster_.job(id).workers) {
        if (worker.place.state != WorkerState::kRunning || worker.place.promised) continue;
        auto& gpus = pool.gpus[worker.place.bank];
        if (gpus == 0) pool.banks.push_back(worker.place.bank);
        gpus += static_cast<std::uint32_t>(std::popcount(worker.place.devices));
      }
    }
  }
  pool.list.Build(cluster_, chosen, now_ms_);
  visited_ += static_cast<std::int64_t>(pool.list.size()) / 4;
  pool.built = true;
}

// A claimer that would end above its quota at every level can take only from who is above its share.
Search::Pool& Search::PoolFor(QueueId claimer, const Vec& adds) {
  const auto& queues = cluster_.queues();
  bool within = false;
  for (QueueId q = claimer; q != 0; q = queues[q].parent) {
    within |= WithinWith(queues[q].held, adds, queues[q].guaranteed, queues.dims());
  }
  Pool& pool = pools_[within ? 1 : 0];
  if (!pool.built) Build(pool, within);
  return pool;
}

bool Search::AnyVictims(Step step, QueueId claimer, const Vec& adds) {
  if (step == Step::kPreempt) return true;
  const Pool& pool = PoolFor(claimer, adds);
  return step == Step::kShrink ? pool.surplus > 0 : pool.list.size() > 0;
}

// Even if everybody in the pool left, the piece would not fit. Later takers only make this truer.
bool Search::Hopeless(Pool& pool, const Piece& piece) {
  const JobState& job = cluster_.job(piece.job);
  const ShapeId id = job.workers[piece.workers[0]].shape;
  const Shape& shape = cluster_.shapes()[id];
  const auto& gpu = shape.spec.request.gpu;
  const bool alike = std::all_of(piece.workers.begin(), piece.workers.end(),
                                 [&](auto i) { return job.workers[i].shape == id; });
  if (gpu.kind != model::GpuKind::kWhole || !alike) return false;
  const auto [found, added] = pool.slots.try_emplace(id, 0);
  if (added) {
    found->second = cluster_.shapes().Slots(id, Mode::kFuture);
    for (const BankId b : pool.banks) {
      const Bank& bank = cluster_.nodes().bank(b);
      const auto open = std::popcount(bank.unoccupied[static_cast<std::size_t>(Mode::kFuture)]);
      const auto most = (static_cast<std::uint32_t>(open) + pool.gpus[b]) /
                        static_cast<std::uint32_t>(gpu.devices);
      const auto emptied = cluster_.shapes().SlotsOn(shape, b, Mode::kEmptied);
      found->second += std::min(most, emptied);
      found->second -= cluster_.shapes().SlotsOn(shape, b, Mode::kFuture);
    }
    visited_ += static_cast<std::int64_t>(pool.banks.size()) / 4;
  }
  return found->second < static_cast<std::int64_t>(piece.workers.size());
}

bool Search::Protected(Step step, const VictimUnit& unit, const JobState& claimer) const {
  const JobState& job = cluster_.job(unit.job);
  if (&job == &claimer) return true;
  if (step == Step::kPreempt && job.priority >= claimer.priority) return true;
  const auto& spec = cluster_.queues().spec(job.queue);
  const auto least =
      step == Step::kPreempt ? spec.preempt_min_runtime_ms : spec.reclaim_min_runtime_ms;
  if (least == 0) return false;
  std::int64_t since = now_ms_;
  for (const auto& worker : job.workers) {
    if (worker.place.Holds()) since = std::min(since, worker.started_ms);
  }
  return now_ms_ - since < least;
}

// Whether any of the nodes could take a worker of the piece once its preemptible workers were gone.
bool Search::Helps(const Piece& piece, const std::vector<WorkerRef>& workers) const {
  const JobState& job = cluster_.job(piece.job);
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

void Search::Take(const VictimUnit& unit, Rule rule, const std::vector<WorkerRef>& workers) {
  Taken taken;
  taken.unit = unit;
  taken.rule = rule;
  for (const auto& ref : workers) {
    const Place place = cluster_.worker(ref).place;
    taken.before.emplace_back(ref, place);
    Place to;
    if (!place.fresh) {
      to.left_bank = place.bank;
      to.left_devices = place.devices;
    }
    cluster_.Move(ref, to);
  }
  taken_.push_back(std::move(taken));
}

Search::Outcome Search::Run(Step step, const Piece& piece, std::int64_t& budget) {
  taken_.clear();
  const JobState& claimer = cluster_.job(piece.job);
  const auto before = Spent();
  VictimList* list = &own_;
  bool hopeless = false;
  if (step == Step::kPreempt) {
    const QueueId queue[] = {claimer.queue};
    own_.Build(cluster_, queue, now_ms_);
    visited_ += static_cast<std::int64_t>(own_.size()) / 4;
  } else {
    Pool& pool = PoolFor(claimer.queue, piece.cost);
    list = &pool.list;
    hopeless = Hopeless(pool, piece);
  }
  const Outcome outcome =
      hopeless ? Outcome::kNobody : Walk(step, piece, *list, before + budget);
  budget -= Spent() - before;
  return outcome;
}

// Takes units until the piece fits and all conditions hold; gives up when Spent() reaches `limit`.
Search::Outcome Search::Walk(Step step, const Piece& piece, VictimList& list, std::int64_t limit) {
  const JobState& claimer = cluster_.job(piece.job);
  const auto start = cluster_.mark();
  Outcome outcome = Outcome::kNobody;
  for (std::size_t i = 0; const VictimUnit* unit = list.At(i); ++i) {
    if (Spent() > limit) {
      outcome = Outcome::kNotProven;
      break;
    }
    ++visited_;
    Rule rule = Rule::kPreempt;
    if (step == Step::kShrink && unit->part == VictimUnit::Part::kJob) continue;
    if (Protected(step, *unit, claimer)) continue;
    const QueueId victim = cluster_.job(unit->job).queue;
    if (step != Step::kPreempt &&
        (victim == claimer.queue || !MayTake(claimer.queue, victim, piece.cost, rule))) {
      continue;
    }
    VictimList::Workers(cluster_, *unit, workers_);
    if (workers_.empty() || !Helps(piece, workers_)) continue;
    Take(*unit, rule, workers_);
    if (!placement_.MayFit(piece, Mode::kFuture)) continue;
    const auto mark = cluster_.mark();
    const auto taken = taken_;
    if (placement_.Place(piece, Mode::kFuture) && Conclude(step, piece)) {
      return Outcome::kFound;
    }
    cluster_.RollbackTo(mark);
    taken_ = taken;
  }
  cluster_.RollbackTo(start);
  taken_.clear();
  return outcome;
}

bool Search::Conclude(Step step, const Piece& piece) {
  claimed_ = placement_.placed();
  LetGo(piece);
  MoveElsewhere(piece);
  if (!WithinBounds(piece)) return false;
  return step == Step::kPreempt || StaysFair(piece);
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
    return cluster_.job(taken.unit.job).Satisfied() || taken.unit.part == VictimUnit::Part::kJob;
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

// First those whose places the piece does not use, then those it could do without; the most valuable
// first, which was taken last.
void Search::LetGo(const Piece& piece) {
  for (const bool anew : {false, true}) {
    for (std::size_t i = taken_.size(); i-- > 0;) {
      if (!TryLetGo(piece, taken_[i], anew)) continue;
      taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
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
    taken.moved = placement_.Rehouse(taken.unit.RehousedAs(), workers_) > 0 && WithinBounds(claim);
    if (!taken.moved) cluster_.RollbackTo(mark);
  }
}

// Limits and, for work that is not preemptible, quotas; on the state that the plan leads to.
bool Search::WithinBounds(const Piece& piece) const {
  const auto& queues = cluster_.queues();
  const JobState& job = cluster_.job(piece.job);
  for (QueueId q = job.queue; q != 0; q = queues[q].parent) {
    const QueueState& queue = queues[q];
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      if (piece.cost[d] == 0) continue;
      if (queue.held[d] > queue.limit[d]) return false;
      if (!job.preemptible && queue.fixed[d] > queue.quota[d]) return false;
    }
  }
  return true;
}

// A claimer that ends above its share must not end as saturated as the sibling it took from, and
// the next allocation must not hand the place straight back.
bool Search::StaysFair(const Piece& piece) {
  const auto& queues = cluster_.queues();
  const QueueId claimer = cluster_.job(piece.job).queue;
  for (const auto& taken : taken_) {
    if (taken.moved) continue;
    const auto [ours, theirs] = queues.Part(claimer, cluster_.job(taken.unit.job).queue);
    const QueueState &a = queues[ours], &b = queues[theirs];
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      if (piece.cost[d] == 0 || a.held[d] <= a.share[d]) continue;
      const Saturation left{a.held[d], a.share[d]}, right{b.held[d], b.share[d]};
      if (!left.LessThan(right)) return false;
    }
  }
  const auto mark = cluster_.mark();
  for (const auto& ref : claimed_) cluster_.Move(ref, Place{});
  bool undone = false;
  for (const auto& taken : taken_) {
    if (taken.moved) continue;
    const auto [ours, theirs] = queues.Part(claimer, cluster_.job(taken.unit.job).queue);
    Vec cost;
    for (const auto& [ref, place] : taken.before) {
      cost.Add(cluster_.shapes()[cluster_.worker(ref).shape].cost, queues.dims());
    }
    undone |= ServedBefore(RankOf(queues, theirs, cost), RankOf(queues, ours, piece.cost));
  }
  cluster_.RollbackTo(mark);
  return !undone;
}

}  // namespace muster::engine

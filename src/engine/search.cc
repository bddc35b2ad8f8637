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

void Search::ListQueues(Step step, QueueId claimer, const Vec& adds) {
  queues_.clear();
  if (step == Step::kPreempt) {
    queues_.push_back(claimer);
    return;
  }
  Rule rule{};
  for (QueueId q = 1; q < cluster_.queues().size(); ++q) {
    if (cluster_.RunningIn(q).empty()) continue;
    if (step != Step::kConsolidate && (q == claimer || !MayTake(claimer, q, adds, rule))) continue;
    queues_.push_back(q);
  }
}

bool Search::Protected(Step step, const VictimUnit& unit, const JobState& claimer) const {
  const JobState& job = cluster_.job(unit.job);
  if (&job == &claimer) return true;
  if (step == Step::kConsolidate) return false;
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
  const auto start = cluster_.mark();
  const auto steps_before = placement_.steps();
  std::int64_t visited = 0;
  const auto spent = [&] { return visited + placement_.steps() - steps_before; };
  const bool surplus_only = step == Step::kShrink;
  ListQueues(step, claimer.queue, piece.cost);
  if (queues_ != listed_queues_ || surplus_only != listed_surplus_ ||
      listed_at_ != cluster_.nodes().log_end()) {
    list_.Build(cluster_, queues_, now_ms_, surplus_only);
    listed_queues_ = queues_;
    listed_surplus_ = surplus_only;
    visited += static_cast<std::int64_t>(list_.size()) / 4;
  }
  Outcome outcome = Outcome::kNobody;
  for (std::size_t i = 0; const VictimUnit* unit = list_.At(i); ++i) {
    if (spent() > budget) {
      outcome = Outcome::kNotProven;
      break;
    }
    ++visited;
    Rule rule = step == Step::kPreempt ? Rule::kPreempt : Rule::kConsolidate;
    if (Protected(step, *unit, claimer)) continue;
    const bool reclaims = step == Step::kReclaim || step == Step::kShrink;
    if (reclaims && !MayTake(claimer.queue, cluster_.job(unit->job).queue, piece.cost, rule)) {
      continue;
    }
    VictimList::Workers(cluster_, *unit, workers_);
    if (workers_.empty() || (step != Step::kConsolidate && !Helps(piece, workers_))) continue;
    Take(*unit, rule, workers_);
    if (!placement_.MayFit(piece, Mode::kFuture)) continue;
    const auto mark = cluster_.mark();
    const auto taken = taken_;
    if (placement_.Place(piece, Mode::kFuture) && Conclude(step, piece)) {
      outcome = Outcome::kFound;
      break;
    }
    cluster_.RollbackTo(mark);
    taken_ = taken;
  }
  budget -= spent();
  if (outcome != Outcome::kFound) {
    cluster_.RollbackTo(start);
    taken_.clear();
  }
  listed_at_ = outcome == Outcome::kFound ? 0 : cluster_.nodes().log_end();
  return outcome;
}

bool Search::Conclude(Step step, const Piece& piece) {
  claimed_ = placement_.placed();
  LetGo(step, piece);
  if (!MoveElsewhere(step, piece)) return false;
  if (!WithinBounds(piece)) return false;
  return step != Step::kReclaim || StaysFair(piece);
}

// The unit's old places are still there: nobody was promised them.
bool Search::CanReturn(const Taken& taken) const {
  for (const auto& [ref, place] : taken.before) {
    const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
    const Bank& bank = cluster_.nodes().bank(place.bank);
    if (!cluster_.nodes().HostFits(bank.node, shape.host, Mode::kFuture)) return false;
    const auto open = bank.unoccupied[static_cast<std::size_t>(Mode::kFuture)];
    if (shape.spec.request.gpu.kind == model::GpuKind::kWhole) {
      if ((place.devices & ~open) != 0) return false;
      continue;
    }
    const auto units = cluster_.shapes().UnitsOn(shape, bank);
    for (std::uint64_t rest = place.devices; rest != 0; rest &= rest - 1) {
      const auto index = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (cluster_.nodes().Room(place.bank, index, Mode::kFuture) < units) return false;
    }
  }
  return true;
}

// Gives the unit its place back; with `anew` the piece may go elsewhere for it.
bool Search::TryLetGo(const Piece& piece, const Taken& taken, bool anew) {
  const auto mark = cluster_.mark();
  const auto bring_back = [&] {
    for (const auto& [ref, place] : taken.before) {
      Taken single;
      single.before = {{ref, place}};
      if (!CanReturn(single)) return false;
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

// First those whose places the piece does not use, then those it could do without; the most
// valuable first, which was taken last. A consolidation keeps the piece where it is: its victims
// lose nothing, but another arrangement might leave one of them without a place.
void Search::LetGo(Step step, const Piece& piece) {
  for (const bool anew : {false, true}) {
    if (anew && step == Step::kConsolidate) break;
    for (std::size_t i = taken_.size(); i-- > 0;) {
      if (!TryLetGo(piece, taken_[i], anew)) continue;
      taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

bool Search::MoveElsewhere(Step step, const Piece& claim) {
  if (step != Step::kConsolidate && !cluster_.policy().victims_may_move) return true;
  placement_.PlaceLeavers(true);
  bool all = true;
  std::int64_t moved = 0;
  for (std::size_t i = taken_.size(); i-- > 0;) {
    Taken& taken = taken_[i];
    Piece piece;
    piece.job = taken.unit.job;
    const bool fresh = taken.before.empty() || taken.before[0].second.fresh;
    if (taken.unit.part == VictimUnit::Part::kWorker) {
      piece.workers.push_back(taken.unit.index);
    } else {
      piece.group = taken.unit.part == VictimUnit::Part::kGroup ? taken.unit.index : 0;
    }
    const auto mark = cluster_.mark();
    taken.moved = !fresh && placement_.Place(piece, Mode::kFuture) && WithinBounds(claim);
    if (!taken.moved) cluster_.RollbackTo(mark);
    all &= taken.moved;
    moved += static_cast<std::int64_t>(taken.before.size());
  }
  placement_.PlaceLeavers(false);
  const auto limit = cluster_.policy().move_limit;
  return step != Step::kConsolidate || (all && (limit < 0 || moved <= limit));
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

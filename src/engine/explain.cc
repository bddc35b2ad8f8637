#include "engine/explain.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>

#include "base/units.h"
#include "engine/placement.h"

namespace muster::engine {

using model::Gate;

namespace {

constexpr std::size_t kHoldersTold = 5;

class Explainer {
 public:
  Explainer(Cluster& cluster, JobId id, std::int64_t now_ms)
      : cluster_(cluster), job_(cluster.job(id)), now_ms_(now_ms) {
    why_.job = id;
  }

  Explanation Run();
  Explanation FindGateOnly();

 private:
  Piece NextPiece() const;
  Gate FindGate(const Piece& piece);
  bool StoppedByBound(const Piece& piece, bool fixed);
  bool StoppedByShare(const Piece& piece);
  bool KeptForAnother();
  void Stop(QueueId queue, std::size_t dim, std::int64_t bound, std::int64_t held,
            std::int64_t asked);
  LevelId RequiredLevel(const Piece& piece) const;
  std::int64_t Fit(ShapeId shape, LevelId level, Mode mode,
                   std::span<const NodeId> back = {}) const;
  bool CouldTake(NodeId node) const;
  bool FitsWith(const Piece& piece, std::span<const NodeId> back) const;
  void CountFits(const Piece& piece);
  void LookAtNodes(ShapeId shape);
  void FindHolders(ShapeId shape);
  void CountJobsAhead();
  void CheckBoundAlone(const Piece& piece);
  void FindChanges(const Piece& piece, ShapeId shape);
  void FindUncordons(const Piece& piece);
  Right RightOf(const JobState& holder) const;

  Cluster& cluster_;
  const JobState& job_;
  std::int64_t now_ms_;
  Explanation why_;
  std::map<ShapeId, std::int64_t> needs_;  // workers of the piece, by shape
};

void Explainer::Stop(QueueId queue, std::size_t dim, std::int64_t bound, std::int64_t held,
                     std::int64_t asked) {
  why_.stopped_by = queue;
  why_.resource = dim;
  why_.bound = bound;
  why_.held = held;
  why_.asked = asked;
}

bool Explainer::StoppedByBound(const Piece& piece, bool fixed) {
  const auto& queues = cluster_.queues();
  for (QueueId q = job_.queue; q != 0; q = queues[q].parent) {
    const Vec& bound = fixed ? queues[q].quota : queues[q].limit;
    const Vec& held = fixed ? queues[q].fixed : queues[q].held;
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      if (piece.cost[d] == 0 || bound[d] == kUnlimited || held[d] + piece.cost[d] <= bound[d]) {
        continue;
      }
      Stop(q, d, bound[d], held[d], piece.cost[d]);
      return true;
    }
  }
  return false;
}

bool Explainer::StoppedByShare(const Piece& piece) {
  const auto& queues = cluster_.queues();
  const QueueState& queue = queues[job_.queue];
  for (std::size_t d = 0; d < queues.dims(); ++d) {
    if (queue.held[d] + piece.cost[d] <= queue.share[d]) continue;
    Stop(job_.queue, d, queue.share[d], queue.held[d], piece.cost[d]);
    return true;
  }
  return false;
}

// Unless whoever it was kept for has started, or gone, since.
bool Explainer::KeptForAnother() {
  why_.kept = job_.kept;
  if (job_.kept.job == kNone) {
    const auto& standing = cluster_.reservations();
    return now_ms_ < job_.kept.to_ms &&
           std::any_of(standing.begin(), standing.end(), [this](const model::Reservation& one) {
             return one.name == job_.kept.booking;
           });
  }
  const JobState& other = cluster_.job(job_.kept.job);
  return other.present && !other.Satisfied() && now_ms_ < job_.kept.from_ms;
}

Gate Explainer::FindGate(const Piece& piece) {
  if (job_.on_hold) return Gate::kOnHold;
  if (piece.workers.empty()) return Gate::kMinimum;
  for (const auto& group : job_.groups) {
    if (group.wish.missing) return Gate::kTopology;
  }
  if (StoppedByBound(piece, false)) return Gate::kLimit;
  if (!job_.preemptible && StoppedByBound(piece, true)) return Gate::kFixedQuota;
  const bool hinted = std::any_of(job_.workers.begin(), job_.workers.end(),
                                  [](const Worker& worker) { return worker.hint != kNone; });
  if (hinted) return Gate::kPromised;
  if (why_.shortage) return Gate::kNeverFits;
  if (!why_.out_of_service.empty()) return Gate::kCapacity;
  if (now_ms_ - job_.submitted_ms < job_.preemption_delay_ms) return Gate::kDelay;
  if (job_.gate == Gate::kNotProven) return Gate::kNotProven;
  if (job_.gate == Gate::kReserved && KeptForAnother()) return Gate::kReserved;
  if (job_.added_in == cluster_.cycles()) return Gate::kNotConsidered;
  return StoppedByShare(piece) ? Gate::kShare : Gate::kCapacity;
}

// The level at which all workers of the piece must be together; kNone: at none.
LevelId Explainer::RequiredLevel(const Piece& piece) const {
  std::uint32_t group = piece.group == kNone ? job_.workers[piece.workers[0]].group : piece.group;
  while (group != kNone && job_.groups[group].wish.require == kNone) {
    group = job_.groups[group].parent;
  }
  return group == kNone ? kNone : job_.groups[group].wish.require;
}

// How many such workers fit: anywhere, or where they must be together in the best domain. The nodes
// `back` count as if they took new workers.
std::int64_t Explainer::Fit(ShapeId id, LevelId level_id, Mode mode,
                            std::span<const NodeId> back) const {
  const Shape& shape = cluster_.shapes()[id];
  const auto added = [&](NodeId n) {
    const NodeState& node = cluster_.nodes().node(n);
    std::int64_t slots = 0;
    for (BankId b = node.first_bank; b < node.first_bank + node.bank_count; ++b) {
      slots += cluster_.shapes().SlotsInService(shape, b, mode);
    }
    return slots;
  };
  if (level_id == kNone) {
    std::int64_t all = cluster_.shapes().Slots(id, mode);
    for (const NodeId node : back) all += added(node);
    return all;
  }
  const Level& level = cluster_.topology().level(level_id);
  const auto& gpu = shape.spec.request.gpu;
  std::map<DomainId, std::int64_t> more;
  for (const NodeId node : back) more[level.domain_of[node]] += added(node);
  std::int64_t most = 0;
  for (DomainId d = 0; d < level.domains.size(); ++d) {
    if (!level.below_node) {
      most = std::max(most, cluster_.shapes().SlotsIn(id, level_id, d, mode) +
                                (more.contains(d) ? more.at(d) : 0));
      continue;
    }
    const auto devices = level.domains[d].devices;
    const NodeId node = level.domains[d].nodes[0];
    const BankId bank = cluster_.nodes().BankOfDevices(node, devices);
    const bool counts = cluster_.nodes().node(node).Usable() ||
                        std::find(back.begin(), back.end(), node) != back.end();
    std::int64_t slots = counts ? cluster_.shapes().SlotsInService(shape, bank, mode) : 0;
    if (gpu.kind == model::GpuKind::kWhole && gpu.devices > 0) {
      const auto open = cluster_.nodes().bank(bank).unoccupied[static_cast<std::size_t>(mode)];
      slots = std::min<std::int64_t>(slots, std::popcount(open & devices) / gpu.devices);
    }
    most = std::max(most, slots);
  }
  return most;
}

// Workers of different shapes are counted apart, each up to what is asked for.
void Explainer::CountFits(const Piece& piece) {
  const LevelId level = RequiredLevel(piece);
  for (const auto worker : piece.workers) ++needs_[job_.workers[worker].shape];
  bool away = false;
  for (const auto& [shape, need] : needs_) {
    const auto most = needs_.size() == 1 ? kUnlimited : need;
    const auto ever = FitEver(cluster_, shape, level, need, Nodes::kAll);
    const auto in_service = FitEver(cluster_, shape, level, need, Nodes::kInService);
    if (ever < need && !why_.shortage) {
      why_.shortage = FindShortage(cluster_, shape, level, need);
    }
    away |= in_service < need;
    why_.fit_now += std::min(most, Fit(shape, level, Mode::kFree));
    why_.fit_empty += std::min(most, Fit(shape, level, Mode::kEmptied));
    why_.fit_in_service += std::min(most, in_service);
    why_.fit_ever += std::min(most, ever);
  }
  if (!away || why_.shortage) return;
  for (NodeId node = 0; node < cluster_.nodes().size(); ++node) {
    if (!cluster_.nodes().node(node).Usable() && CouldTake(node)) {
      why_.out_of_service.push_back(node);
    }
  }
}

// Whether the node could take any of the workers with nothing running on it.
bool Explainer::CouldTake(NodeId node) const {
  return std::any_of(needs_.begin(), needs_.end(), [&](const auto& need) {
    return EverOn(cluster_, need.first, node, ~0ULL, need.second) > 0;
  });
}

bool Explainer::FitsWith(const Piece& piece, std::span<const NodeId> back) const {
  const LevelId level = RequiredLevel(piece);
  return std::all_of(needs_.begin(), needs_.end(), [&](const auto& need) {
    return Fit(need.first, level, Mode::kFree, back) >= need.second;
  });
}

void Explainer::LookAtNodes(ShapeId id) {
  const auto& nodes = cluster_.nodes();
  const Shape& shape = cluster_.shapes()[id];
  const auto& gpu = shape.spec.request.gpu;
  const auto now = static_cast<std::size_t>(Mode::kFree);
  std::int64_t least = kUnlimited;
  for (NodeId n = 0; n < nodes.size(); ++n) {
    const auto& node = nodes.node(n);
    Filter best = Filter::kDown;
    for (BankId b = node.first_bank; b < node.first_bank + node.bank_count; ++b) {
      const Filter filter = cluster_.shapes().Test(shape, b, Mode::kFree);
      best = b == node.first_bank || filter == Filter::kFits || filter > best ? filter : best;
      if (best == Filter::kFits) break;
      std::int64_t missing = kUnlimited - 1;
      if (filter == Filter::kGpus) {
        missing = gpu.kind == model::GpuKind::kWhole
                      ? gpu.devices - std::popcount(nodes.bank(b).unoccupied[now])
                      : 1;
      } else if (filter < Filter::kCores) {
        continue;
      }
      if (missing >= least) continue;
      least = missing;
      why_.nearest = {n, filter, filter == Filter::kGpus ? missing : 0};
    }
    ++why_.nodes[static_cast<std::size_t>(best)];
  }
}

Right Explainer::RightOf(const JobState& holder) const {
  if (!holder.preemptible) return Right::kFixed;
  const QueueState& queue = cluster_.queues()[holder.queue];
  if (queue.held[kGpuDim] > queue.share[kGpuDim]) return Right::kBeyond;
  return queue.held[kGpuDim] > queue.guaranteed[kGpuDim] ? Right::kShare : Right::kQuota;
}

void Explainer::FindHolders(ShapeId id) {
  const auto& nodes = cluster_.nodes();
  const Shape& shape = cluster_.shapes()[id];
  std::map<std::pair<QueueId, Right>, std::int64_t> held;
  for (NodeId n = 0; n < nodes.size(); ++n) {
    for (const auto& ref : cluster_.WorkersOn(n)) {
      const Place& place = cluster_.worker(ref).place;
      if (!place.Holds() || ref.job == why_.job || !shape.allowed[place.bank]) continue;
      const TypeId type = nodes.bank(place.bank).type;
      if (type == kNone || shape.type_rank[type] == kNone) continue;
      const JobState& holder = cluster_.job(ref.job);
      held[{holder.queue, RightOf(holder)}] += place.charge_milli;
    }
  }
  for (const auto& [key, milli] : held) why_.holders.push_back({key.first, key.second, milli});
  std::stable_sort(why_.holders.begin(), why_.holders.end(),
                   [](const Holder& a, const Holder& b) { return a.gpu_milli > b.gpu_milli; });
  if (why_.holders.size() > kHoldersTold) why_.holders.resize(kHoldersTold);
}

// Whether a limit on its path, or a quota, is lower than what it needs even with nothing else
// running.
void Explainer::CheckBoundAlone(const Piece& piece) {
  const auto& queues = cluster_.queues();
  const Vec least = LeastCost(cluster_, piece);
  for (QueueId q = job_.queue; q != 0; q = queues[q].parent) {
    for (std::size_t d = 0; d < queues.dims(); ++d) {
      const bool limit = why_.gate == Gate::kLimit;
      const auto bound = limit ? queues[q].limit[d] : queues[q].quota[d];
      if (bound == kUnlimited || least[d] <= bound) continue;
      Stop(q, d, bound, limit ? queues[q].held[d] : queues[q].fixed[d], least[d]);
      why_.beyond = true;
      return;
    }
  }
}

// One cordoned node that is enough by itself, or all of them together.
void Explainer::FindUncordons(const Piece& piece) {
  std::vector<NodeId> cordoned;
  const auto& nodes = cluster_.nodes();
  for (NodeId n = 0; n < nodes.size(); ++n) {
    const bool takes_none = nodes.node(n).up && !nodes.node(n).Usable();
    if (takes_none && CouldTake(n)) cordoned.push_back(n);
  }
  for (const NodeId& node : cordoned) {
    if (!FitsWith(piece, {&node, 1})) continue;
    why_.changes.push_back({Change::Kind::kUncordon, 1, nodes.spec(node).name, ""});
    return;
  }
  if (cordoned.size() < 2 || !FitsWith(piece, cordoned)) return;
  std::string names;
  for (const NodeId node : cordoned) names += (names.empty() ? "" : ", ") + nodes.spec(node).name;
  why_.changes.push_back(
      {Change::Kind::kUncordon, static_cast<std::int64_t>(cordoned.size()), names, ""});
}

void Explainer::FindChanges(const Piece& piece, ShapeId id) {
  const auto& queues = cluster_.queues();
  const Shape& shape = cluster_.shapes()[id];
  if (why_.stopped_by != kNone) {
    // A higher share comes from a higher quota, and only what is above the present one counts.
    const auto quota = queues[why_.stopped_by].quota[why_.resource];
    const auto bound = why_.gate == Gate::kShare ? quota : why_.bound;
    const auto missing = why_.held + why_.asked - bound;
    const auto kind =
        why_.gate == Gate::kLimit ? Change::Kind::kRaiseLimit : Change::Kind::kRaiseQuota;
    // No quota takes from its own queue, nor from work that is never asked to leave.
    const auto to_be_had = queues[0].share[why_.resource] - queues[0].fixed[why_.resource] +
                           queues[why_.stopped_by].fixed[why_.resource];
    const bool helps = why_.gate != Gate::kShare || why_.held + why_.asked <= to_be_had;
    if (bound != kUnlimited && missing > 0 && helps) {
      why_.changes.push_back(
          {kind, missing, queues.spec(why_.stopped_by).name, queues.dim_name(why_.resource)});
    }
  }
  const bool bounded = why_.gate == Gate::kLimit || why_.gate == Gate::kFixedQuota;
  const bool no_room = why_.gate == Gate::kCapacity || why_.gate == Gate::kShare ||
                       why_.gate == Gate::kDelay || why_.gate == Gate::kNotProven;
  if (no_room && why_.fit_now < why_.workers) FindUncordons(piece);
  if (!bounded && why_.fit_now > 0 && why_.fit_now < why_.workers && !job_.Satisfied()) {
    why_.changes.push_back({Change::Kind::kFewerWorkers, why_.fit_now, "", ""});
  }
  if (bounded && why_.fit_now >= why_.workers) {
    for (QueueId q = 1; q < queues.size(); ++q) {
      if (q == job_.queue || !queues[q].children.empty()) continue;
      const bool may = queues.WithinLimits(q, piece.cost) &&
                       (job_.preemptible || queues.WithinFixedQuota(q, piece.cost));
      if (!may) continue;
      why_.changes.push_back({Change::Kind::kOtherQueue, 0, queues.spec(q).name, ""});
      break;
    }
  }
  if (!bounded && !shape.spec.gpu_types.empty()) {
    for (TypeId type = 0; type < cluster_.nodes().type_count(); ++type) {
      if (shape.type_rank[type] != kNone) continue;
      Shape other = shape;
      other.type_rank.assign(other.type_rank.size(), kNone);
      other.type_rank[type] = 0;
      std::int64_t slots = 0;
      for (BankId b = 0; b < cluster_.nodes().bank_count(); ++b) {
        slots += cluster_.shapes().SlotsOn(other, b, Mode::kFree);
      }
      if (slots < why_.workers) continue;
      why_.changes.push_back({Change::Kind::kOtherType, 0, cluster_.nodes().type_name(type), ""});
    }
  }
  if (!bounded && why_.workers == 1 && why_.nearest.gpus_missing > 0) {
    why_.changes.push_back({Change::Kind::kFreeGpus, why_.nearest.gpus_missing,
                            cluster_.nodes().spec(why_.nearest.node).name, ""});
  }
}

Piece Explainer::NextPiece() const {
  std::vector<Piece> pieces;
  Placement(cluster_).NextPieces(why_.job, pieces);
  return pieces.empty() ? Piece{} : std::move(pieces[0]);
}

Explanation Explainer::FindGateOnly() {
  why_.gate = FindGate(NextPiece());
  return why_;
}

void Explainer::CountJobsAhead() {
  if (!cluster_.waiting().Contains(why_.job)) return;
  const WaitKey& key = cluster_.waiting().key(why_.job);
  for (const auto& head : cluster_.waiting().OfQueue(job_.queue)) {
    for (const auto& waiter : cluster_.waiting().bucket(head.bucket).waiters()) {
      if (!(waiter.key < key)) break;
      ++why_.jobs_ahead;
    }
  }
}

Explanation Explainer::Run() {
  const auto& queues = cluster_.queues();
  why_.quota = queues[job_.queue].quota[kGpuDim];
  why_.queue_held = queues[job_.queue].held[kGpuDim];
  why_.share = queues[job_.queue].share[kGpuDim];
  CountJobsAhead();
  const Piece piece = NextPiece();
  ShapeId shape = kNone;
  if (!piece.workers.empty()) {
    shape = job_.workers[piece.workers[0]].shape;
    why_.workers = static_cast<std::int64_t>(piece.workers.size());
    CountFits(piece);
    LookAtNodes(shape);
  }
  why_.gate = FindGate(piece);
  if (shape == kNone) return why_;
  const bool bounded = why_.gate == Gate::kLimit || why_.gate == Gate::kFixedQuota;
  if (bounded && !job_.Satisfied()) CheckBoundAlone(piece);
  FindHolders(shape);
  FindChanges(piece, shape);
  return why_;
}

}  // namespace

Explanation Explain(Cluster& cluster, JobId job, std::int64_t now_ms) {
  return Explainer(cluster, job, now_ms).Run();
}

Explanation ExplainGate(Cluster& cluster, JobId job, std::int64_t now_ms) {
  return Explainer(cluster, job, now_ms).FindGateOnly();
}

}  // namespace muster::engine

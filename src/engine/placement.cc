#include "engine/placement.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace muster::engine {

using model::GpuKind;

// --- What a job asks for

bool Placement::Collect(const JobState& job, std::uint32_t group, Piece& piece) const {
  const GroupState& state = job.groups[group];
  if (state.leaf) {
    std::uint32_t need = state.minimum - std::min(state.minimum, state.active);
    for (std::uint32_t i = 0; need > 0 && i < state.worker_count; ++i) {
      const auto index = state.first_worker + i;
      if (!Waits(job.workers[index])) continue;
      piece.workers.push_back(index);
      --need;
    }
    return need == 0;
  }
  std::uint32_t need = state.minimum - std::min(state.minimum, state.satisfied);
  for (const auto child : state.children) {
    if (need == 0) break;
    if (job.groups[child].Satisfied()) continue;
    const auto before = piece.workers.size();
    if (Collect(job, child, piece)) {
      --need;
    } else {
      piece.workers.resize(before);
    }
  }
  return need == 0;
}

void Placement::NextPieces(JobId id, std::vector<Piece>& out) const {
  out.clear();
  const JobState& job = cluster_.job(id);
  const auto dims = cluster_.queues().dims();
  const auto price = [&](Piece& piece) {
    for (const auto i : piece.workers) {
      const Shape& shape = cluster_.shapes()[job.workers[i].shape];
      piece.cost.Add(shape.cost, dims);
      piece.estimated |= shape.spec.request.gpu.kind == GpuKind::kMemory;
    }
  };
  if (!job.Satisfied()) {
    Piece piece;
    piece.job = id;
    piece.group = 0;
    if (!Collect(job, 0, piece)) return;
    price(piece);
    out.push_back(std::move(piece));
    return;
  }
  if (!cluster_.policy().grow || !job.WantsMore()) return;
  std::vector<std::pair<std::uint32_t, ShapeId>> seen;  // one try for each group and shape
  for (std::uint32_t i = 0; i < job.workers.size(); ++i) {
    const Worker& worker = job.workers[i];
    if (!Waits(worker)) continue;
    const std::pair kind{worker.group, worker.shape};
    if (std::find(seen.begin(), seen.end(), kind) != seen.end()) continue;
    seen.push_back(kind);
    Piece piece;
    piece.job = id;
    if (job.groups[worker.group].Satisfied()) {
      piece.workers.push_back(i);
    } else {
      std::uint32_t unit = worker.group;
      while (!job.groups[job.groups[unit].parent].Satisfied()) unit = job.groups[unit].parent;
      piece.group = unit;
      if (!Collect(job, unit, piece)) continue;
    }
    price(piece);
    out.push_back(std::move(piece));
  }
  std::stable_sort(out.begin(), out.end(), [&](const Piece& a, const Piece& b) {
    return job.workers[a.workers[0]].priority > job.workers[b.workers[0]].priority;
  });
}

bool Placement::MayFit(const Piece& piece, Mode mode) {
  const JobState& job = cluster_.job(piece.job);
  if (piece.group != kNone && !job.groups[piece.group].leaf) return true;
  std::uint32_t run = 0;
  for (std::size_t i = 0; i < piece.workers.size(); ++i) {
    ++run;
    const ShapeId shape = job.workers[piece.workers[i]].shape;
    const bool last =
        i + 1 == piece.workers.size() || job.workers[piece.workers[i + 1]].shape != shape;
    if (!last) continue;
    if (cluster_.shapes().Slots(shape, mode) < run) return false;
    run = 0;
  }
  return true;
}

// --- Groups and their wishes

bool Placement::Place(const Piece& piece, Mode mode) {
  scopes_.clear();
  return PlacePiece(piece, mode);
}

std::size_t Placement::Rehouse(std::uint32_t group, const std::vector<WorkerRef>& workers) {
  if (workers.empty()) return 0;
  const Scopes scopes = std::exchange(scopes_, {});
  leavers_ = true;
  Piece piece;
  piece.job = workers[0].job;
  piece.group = group;
  const bool together = group == kNone || PlacePiece(piece, Mode::kFuture);
  std::size_t housed = 0;
  for (const auto& ref : workers) {
    if (!together) break;
    piece.group = kNone;
    piece.workers = {ref.index};
    const bool has_place = cluster_.worker(ref).place.Holds();
    housed += has_place || PlacePiece(piece, Mode::kFuture) ? 1 : 0;
  }
  leavers_ = false;
  scopes_ = scopes;
  return housed;
}

bool Placement::PlacePiece(const Piece& piece, Mode mode) {
  const auto mark = cluster_.mark();
  const auto outer = scopes_.size();
  const JobState& job = cluster_.job(piece.job);
  Scopes preferred;  // only single workers look at what the groups above them prefer
  const bool single = piece.group == kNone;
  const auto above = single ? job.workers[piece.workers[0]].group : job.groups[piece.group].parent;
  LevelId open = kNone;
  bool placed = JoinGroups(job, above, preferred, open);
  const auto place = [&] {
    return single ? PlaceSingle({piece.job, piece.workers[0]}, preferred, mode)
                  : PlaceGroup(piece.job, piece.group, mode);
  };
  if (placed && open == kNone) {
    placed = place();
  } else if (placed) {
    placed = PlaceInAnyDomain(open, place);
  }
  scopes_.resize(outer);
  if (placed) {
    cluster_.TouchedSince(mark, placed_);  // others may have made room
    std::erase_if(placed_, [&](const WorkerRef& ref) { return ref.job != piece.job; });
  } else {
    cluster_.RollbackTo(mark);
  }
  return placed;
}

// A place that the group already has, which its required domain must contain; nullptr: none.
const engine::Place* Placement::Anchor(const JobState& job, std::uint32_t group) const {
  const GroupState& state = job.groups[group];
  if (!state.leaf) {
    for (const auto child : state.children) {
      if (const auto* place = Anchor(job, child); place != nullptr) return place;
    }
    return nullptr;
  }
  for (std::uint32_t i = 0; i < state.worker_count; ++i) {
    const auto& place = job.workers[state.first_worker + i].place;
    if (place.Holds()) return &place;
  }
  return nullptr;
}

DomainId Placement::DomainOf(LevelId level_id, const engine::Place& place) const {
  const Level& level = cluster_.topology().level(level_id);
  const NodeId node = cluster_.nodes().bank(place.bank).node;
  DomainId domain = level.domain_of[node];
  if (!level.below_node || domain == kNone || place.devices == 0) return domain;
  while ((level.domains[domain].devices & place.devices) == 0) {
    if (++domain >= level.domains.size() || level.domains[domain].nodes[0] != node) return kNone;
  }
  return domain;
}

bool Placement::Holds(LevelId level_id, DomainId domain, NodeId node) const {
  const Level& level = cluster_.topology().level(level_id);
  if (!level.below_node) return level.domain_of[node] == domain;
  return level.domains[domain].nodes[0] == node;
}

bool Placement::InScope(NodeId node) const {
  return std::all_of(scopes_.begin(), scopes_.end(),
                     [&](const Scope& scope) { return Holds(scope.level, scope.domain, node); });
}

std::uint64_t Placement::ScopeDevices() const {
  std::uint64_t devices = ~0ULL;
  for (const auto& scope : scopes_) {
    devices &= cluster_.topology().level(scope.level).domains[scope.domain].devices;
  }
  return devices;
}

// The domains of a level that might hold what the group needs, fullest first.
void Placement::ListCandidates(JobId id, std::uint32_t group, LevelId level_id, Mode mode,
                               std::vector<DomainId>& out) {
  out.clear();
  const JobState& job = cluster_.job(id);
  const Level& level = cluster_.topology().level(level_id);
  Piece need;
  const auto* anchor = Anchor(job, group);
  if (!Collect(job, group, need) && anchor == nullptr) return;
  const DomainId stays = anchor == nullptr ? kNone : DomainOf(level_id, *anchor);
  std::vector<std::pair<std::int64_t, DomainId>> found;
  for (DomainId d = 0; d < level.domains.size(); ++d) {
    const NodeId first = level.domains[d].nodes[0];
    if (!InScope(first) || (anchor != nullptr && d != stays)) continue;
    std::int64_t slots = 0;
    if (level.below_node) {
      const BankId bank = cluster_.nodes().BankOfDevices(first, level.domains[d].devices);
      const auto free = cluster_.nodes().bank(bank).unoccupied[static_cast<std::size_t>(mode)];
      slots = std::popcount(free & level.domains[d].devices);
    } else if (!need.workers.empty()) {
      const ShapeId shape = job.workers[need.workers[0]].shape;
      slots =
          cluster_.shapes().SlotsIn(shape, level_id, d, maker_ != nullptr ? Mode::kEmptied : mode);
      const auto& state = job.groups[group];
      const bool alike = std::all_of(need.workers.begin(), need.workers.end(),
                                     [&](auto i) { return job.workers[i].shape == shape; });
      const bool all_needed = state.leaf && alike;
      if (slots < (all_needed ? static_cast<std::int64_t>(need.workers.size()) : 1)) continue;
    }
    ++steps_;
    found.emplace_back(slots, d);
  }
  std::sort(found.begin(), found.end());
  for (const auto& [slots, domain] : found) out.push_back(domain);
}

bool Placement::PlaceGroup(JobId id, std::uint32_t group, Mode mode) {
  const Wish wish = cluster_.job(id).groups[group].wish;
  if (wish.missing) return false;
  if (wish.require == kNone && wish.prefer == kNone) return PlaceMembers(id, group, mode);
  std::vector<LevelId> levels;
  for (LevelId level = wish.prefer; level != kNone && level != wish.require;
       level = cluster_.topology().level(level).wider) {
    levels.push_back(level);
  }
  if (wish.require != kNone) levels.push_back(wish.require);
  std::vector<DomainId> candidates;
  for (const LevelId level : levels) {
    ListCandidates(id, group, level, mode, candidates);
    for (const DomainId domain : candidates) {
      scopes_.push_back({level, domain});
      const auto mark = cluster_.mark();
      const bool placed = PlaceMembers(id, group, mode);
      scopes_.pop_back();
      if (placed) return true;
      cluster_.RollbackTo(mark);
    }
  }
  return wish.require == kNone && PlaceMembers(id, group, mode);
}

bool Placement::PlaceMembers(JobId id, std::uint32_t group, Mode mode) {
  const GroupState& state = cluster_.job(id).groups[group];
  if (state.leaf) {
    Piece piece;
    if (!Collect(cluster_.job(id), group, piece)) return false;
    return PlaceLeaf(id, piece.workers, mode);
  }
  for (const auto child : state.children) {
    if (state.satisfied >= state.minimum) break;
    if (cluster_.job(id).groups[child].Satisfied()) continue;
    const auto mark = cluster_.mark();
    if (!PlaceGroup(id, child, mode)) cluster_.RollbackTo(mark);
  }
  return state.satisfied >= state.minimum;
}

bool Placement::PlaceLeaf(JobId id, const std::vector<std::uint32_t>& workers, Mode mode) {
  const JobState& job = cluster_.job(id);
  run_ = {};
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::uint32_t together = 1;
    if (cluster_.policy().gang_packing == GangPacking::kFewestNodes) {
      while (i + together < workers.size() &&
             job.workers[workers[i + together]].shape == job.workers[workers[i]].shape) {
        ++together;
      }
    }
    if (!PlaceWorker({id, workers[i]}, together, mode)) return false;
  }
  run_ = {};
  PutInOrder(id, workers);
  return true;
}

// Equal workers are numbered along the nodes, so that neighbours in rank are neighbours in place.
void Placement::PutInOrder(JobId id, const std::vector<std::uint32_t>& workers) {
  const auto& all = cluster_.job(id).workers;
  const auto before = [](const engine::Place& a, const engine::Place& b) {
    return std::tuple(a.bank, a.devices) < std::tuple(b.bank, b.devices);
  };
  for (std::size_t first = 0; first < workers.size();) {
    std::size_t last = first + 1;
    bool sorted = true;
    while (last < workers.size() && all[workers[last]].shape == all[workers[first]].shape) {
      sorted &= !before(all[workers[last]].place, all[workers[last - 1]].place);
      ++last;
    }
    if (!sorted && !leavers_) {
      std::vector<engine::Place> places;
      for (std::size_t i = first; i < last; ++i) places.push_back(all[workers[i]].place);
      std::sort(places.begin(), places.end(), before);
      for (std::size_t i = first; i < last; ++i) cluster_.Move({id, workers[i]}, engine::Place{});
      for (std::size_t i = first; i < last; ++i) {
        cluster_.Move({id, workers[i]}, places[i - first]);
      }
    }
    first = last;
  }
}

// Narrows the scopes to where the group and its ancestors already stand, where they wished to be
// together. `open` is the first level at which one of them must be together but stands nowhere, as
// when all its workers have succeeded. False: one of them wishes for what does not exist.
bool Placement::JoinGroups(const JobState& job, std::uint32_t group, Scopes& preferred,
                           LevelId& open) {
  for (std::uint32_t g = group; g != kNone; g = job.groups[g].parent) {
    const Wish& wish = job.groups[g].wish;
    if (wish.missing) return false;
    const auto* anchor = Anchor(job, g);
    if (anchor == nullptr) {
      if (open == kNone) open = wish.require;
      continue;
    }
    for (const LevelId level : {wish.require, wish.prefer}) {
      if (level == kNone) continue;
      const DomainId domain = DomainOf(level, *anchor);
      if (domain == kNone) continue;
      (level == wish.require ? scopes_ : preferred).push_back({level, domain});
    }
  }
  return true;
}

bool Placement::PlaceInAnyDomain(LevelId level, const std::function<bool()>& place) {
  const auto& domains = cluster_.topology().level(level).domains;
  for (DomainId d = 0; d < domains.size(); ++d) {
    if (!InScope(domains[d].nodes[0])) continue;
    const auto mark = cluster_.mark();
    scopes_.push_back({level, d});
    const bool placed = place();
    scopes_.pop_back();
    if (placed) return true;
    cluster_.RollbackTo(mark);
  }
  return false;
}

bool Placement::PlaceSingle(WorkerRef ref, const Scopes& preferred, Mode mode) {
  if (!preferred.empty()) {
    const auto required = scopes_.size();
    scopes_.insert(scopes_.end(), preferred.begin(), preferred.end());
    const bool placed = PlaceWorker(ref, 1, mode);
    scopes_.resize(required);
    if (placed) return true;
  }
  return PlaceWorker(ref, 1, mode);
}

// --- One worker

bool Placement::PlaceWorker(WorkerRef ref, std::uint32_t together, Mode mode) {
  const BankId hint = cluster_.worker(ref).hint;
  const bool hinted = hint != kNone && InScope(cluster_.nodes().bank(hint).node);
  if (hinted && TryOn(ref, hint, together, mode)) return true;
  if (run_.devices != 0 && TryOn(ref, run_.bank, together, mode)) return true;
  const BankId bank = PickBank(ref, together, mode);
  if (bank != kNone) return TryOn(ref, bank, together, mode);
  return maker_ != nullptr && !leavers_ && PlaceInMadeRoom(ref, mode);
}

bool Placement::PlaceOn(WorkerRef ref, BankId bank) {
  scopes_.clear();
  run_ = {};
  return TryOn(ref, bank, 1, Mode::kFuture);
}

bool Placement::PlaceInMadeRoom(WorkerRef ref, Mode mode) {
  std::vector<BankId> banks;
  maker_->ListBanks(ref, banks);
  std::erase_if(banks, [&](BankId b) { return !InScope(cluster_.nodes().bank(b).node); });
  for (std::size_t turn = 0;; ++turn) {
    const auto mark = cluster_.mark();
    const BankId bank = maker_->MakeRoom(ref, banks, turn);
    if (bank == kNone) return false;
    if (TryOn(ref, bank, 1, mode) && maker_->Settle()) return true;
    cluster_.RollbackTo(mark);
  }
}

// `together` equal workers are to come here if they fit: they take GPUs that are close as a whole.
bool Placement::TryOn(WorkerRef ref, BankId id, std::uint32_t together, Mode mode) {
  const Worker& worker = cluster_.worker(ref);
  const Shape& shape = cluster_.shapes()[worker.shape];
  const Bank& bank = cluster_.nodes().bank(id);
  if (!Fits(shape, id, mode) || !TypeAllowed(ref.job, shape, bank.type)) return false;
  const auto& gpu = shape.spec.request.gpu;
  engine::Place place;
  place.state = WorkerState::kRunning;
  place.fresh = true;
  place.promised = mode != Mode::kFree;
  place.bank = id;
  place.charge_milli = cluster_.shapes().ChargeOn(shape, bank);
  place.left_bank = worker.place.left_bank;
  place.left_devices = worker.place.left_devices;
  const auto count = static_cast<std::uint32_t>(gpu.devices);
  if (gpu.kind == GpuKind::kWhole && count > 0) {
    auto free = bank.unoccupied[static_cast<std::size_t>(mode)] & ScopeDevices();
    if (run_.bank == id && (free & run_.devices) != 0) free &= run_.devices;
    const auto slots = static_cast<std::uint32_t>(std::popcount(free)) / count;
    if (slots == 0) return false;
    const auto& layout = cluster_.nodes().layout(bank.node);
    const DeviceRules rules = RulesFor(ref.job);
    const auto all = std::min(slots, together) * count;
    const auto chosen = ChooseDevices(layout, free, all, rules);
    place.devices = all == count ? chosen : ChooseDevices(layout, chosen, count, rules);
    run_ = {id, chosen & ~place.devices};
  } else if (gpu.kind != GpuKind::kNone && count > 0) {
    place.devices = ChooseShared(ref, shape, id, mode);
    if (place.devices == 0) return false;
  }
  cluster_.Move(ref, place);
  return true;
}

}  // namespace muster::engine

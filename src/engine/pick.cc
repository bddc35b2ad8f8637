// Placement, second half: which bank of GPUs a worker goes to.
#include <algorithm>
#include <bit>

#include "base/units.h"
#include "engine/placement.h"

namespace muster::engine {

using model::GpuKind;

namespace {

constexpr std::size_t kSmallScope = 64;    // nodes that are looked at one by one
constexpr std::size_t kEquallyFull = 4;    // banks whose links are compared
constexpr std::size_t kNearlyFitting = 8;  // banks a GPU type offers to those who make room

}  // namespace

BankId Placement::PickBank(WorkerRef ref, std::uint32_t together, Mode mode) {
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  if (shape.spec.nowhere) return kNone;
  if (!scopes_.empty()) {
    const Scope& narrowest = scopes_.back();
    const auto& domain = cluster_.topology().level(narrowest.level).domains[narrowest.domain];
    if (domain.nodes.size() <= kSmallScope) return PickNear(ref, together, mode);
  }
  if (mode == Mode::kFree) {
    if (const BankId found = PickByWorth(ref, shape); found != kNone) return found;
  }
  const auto& gpu = shape.spec.request.gpu;
  if (gpu.kind == GpuKind::kNone || gpu.devices == 0) return PickHost(shape, mode);
  return gpu.kind == GpuKind::kWhole ? PickWhole(ref, shape, together, mode)
                                     : PickShared(ref, shape, mode);
}

bool Placement::Fits(const Shape& shape, BankId id, Mode mode) const {
  ++steps_;
  const Bank& bank = cluster_.nodes().bank(id);
  if (!shape.anywhere && !shape.allowed[id]) return false;
  if (shape.spec.request.gpu.kind != GpuKind::kNone &&
      (bank.type == kNone || shape.type_rank[bank.type] == kNone)) {
    return false;
  }
  return cluster_.nodes().node(bank.node).Usable() && InScope(bank.node) &&
         cluster_.nodes().HostFits(bank.node, shape.host, mode);
}

// A limit, or for fixed work a quota, that names the GPU type may rule it out where another is
// allowed. A job whose size is given out by goodput keeps to one type.
bool Placement::TypeAllowed(JobId id, const Shape& shape, TypeId type) const {
  const auto& queues = cluster_.queues();
  if (only_ != kNone && type != only_) return false;
  if (cluster_.KeepsToType(id)) {
    const TypeId own = cluster_.TypeOf(id);
    if (own != kNone && own != type) return false;
  }
  const auto dim = type == kNone ? queues.dims() : cluster_.TypeDim(type);
  if (dim >= queues.dims()) return true;
  const JobState& job = cluster_.job(id);
  for (QueueId q = job.queue; q != 0; q = queues[q].parent) {
    const QueueState& queue = queues[q];
    const auto adds = shape.cost[kGpuDim];
    if (queue.limit[dim] != kUnlimited && queue.held[dim] + adds > queue.limit[dim]) return false;
    if (!job.preemptible && queue.quota[dim] != kUnlimited &&
        queue.fixed[dim] + adds > queue.quota[dim]) {
      return false;
    }
  }
  return true;
}

DeviceRules Placement::RulesFor(JobId job) const {
  const Policy& policy = cluster_.policy();
  return {policy.link_distance, policy.spare_islands, policy.near_nic,
          cluster_.job(job).workers.size() > 1};
}

// Where the workers to come lose the least by it. Only for who goes anywhere: a share, the worker
// of a job that has no other, a worker without GPUs. Gangs are packed, and so is everybody where a
// limit rules out one of the GPU types, and in room that others only leave: it is little, and
// trials would have to follow it. kNone: there is none, or not for it.
BankId Placement::PickByWorth(WorkerRef ref, const Shape& shape) {
  if (!cluster_.policy().place_by_worth || !scopes_.empty()) return kNone;
  const auto& gpu = shape.spec.request.gpu;
  const bool whole = gpu.kind == GpuKind::kWhole;
  if (whole && cluster_.job(ref.job).workers.size() > 1) return kNone;
  const bool gpus = gpu.kind != GpuKind::kNone;
  for (TypeId type = 0; gpus && type < cluster_.nodes().type_count(); ++type) {
    if (shape.type_rank[type] != kNone && !TypeAllowed(ref.job, shape, type)) return kNone;
  }
  return cluster_.worth().Pick(cluster_.worker(ref).shape, [&](BankId b) {
    return Fits(shape, b, Mode::kFree) &&
           (whole || !gpus || ChooseShared(ref, shape, b, Mode::kFree) != 0);
  });
}

// The bank with the fewest unoccupied GPUs that takes `together` workers; failing that, the one
// that takes the most of them. GPU types in the order of preference; among equally full banks the
// one whose GPUs are closer, then the one where a smaller part is broken.
BankId Placement::PickWhole(WorkerRef ref, const Shape& shape, std::uint32_t together, Mode mode) {
  const auto& nodes = cluster_.nodes();
  const auto each = static_cast<std::uint32_t>(shape.spec.request.gpu.devices);
  const auto most = nodes.max_devices();
  const auto ranks = std::max<std::size_t>(1, shape.spec.gpu_types.size());
  const DeviceRules rules = RulesFor(ref.job);
  const auto breakage = [&](BankId b, std::uint32_t count) -> std::uint32_t {
    const Bank& bank = nodes.bank(b);
    const auto& layout = nodes.layout(bank.node);
    if (layout.flat || !rules.links || !rules.spare_islands) return 0;
    const auto open = bank.unoccupied[static_cast<std::size_t>(mode)];
    const auto all = std::min(count / each, together) * each;
    return BreakageOf(layout, open, ChooseDevices(layout, open, all, rules));
  };
  const auto look = [&](std::uint32_t count, std::uint32_t rank) -> BankId {
    BankId best = kNone;
    std::uint32_t least = 0;
    std::size_t compared = 0;
    for (TypeId type = 0; type < nodes.type_count(); ++type) {
      if (shape.type_rank[type] != rank || !TypeAllowed(ref.job, shape, type)) continue;
      const Bits& banks = nodes.WithUnoccupied(type, count, mode);
      for (BankId b = banks.Next(0); b != kNone; b = banks.Next(b + 1)) {
        if (!Fits(shape, b, mode)) continue;
        const auto here = breakage(b, count);
        if (best == kNone || here < least) {
          best = b;
          least = here;
        }
        if (least == 0 || ++compared == kEquallyFull) return best;
      }
    }
    return best;
  };
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto wanted = std::min(most, each * together);
    for (std::uint32_t count = wanted; count >= each && count <= most; ++count) {
      if (const BankId found = look(count, rank); found != kNone) return found;
    }
    for (std::uint32_t count = wanted; count-- > each;) {
      if (const BankId found = look(count, rank); found != kNone) return found;
    }
  }
  return kNone;
}

// A shared GPU with the least room that is enough; failing that, a new GPU on the fullest node.
BankId Placement::PickShared(WorkerRef ref, const Shape& shape, Mode mode) {
  const auto& nodes = cluster_.nodes();
  const auto& gpu = shape.spec.request.gpu;
  const auto ranks = std::max<std::size_t>(1, shape.spec.gpu_types.size());
  const auto first_class =
      gpu.kind == GpuKind::kShare ? NodeTable::RoomClass(gpu.share_milli, kMilli) : 1;
  const auto look = [&](const Bits& banks) -> BankId {
    for (BankId b = banks.Next(0); b != kNone; b = banks.Next(b + 1)) {
      if (Fits(shape, b, mode) && ChooseShared(ref, shape, b, mode) != 0) return b;
    }
    return kNone;
  };
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t room = first_class; room <= NodeTable::kRoomClasses; ++room) {
      for (TypeId type = 0; type < nodes.type_count(); ++type) {
        if (shape.type_rank[type] != rank || !TypeAllowed(ref.job, shape, type)) continue;
        const BankId found = look(nodes.WithRoom(type, room, mode));
        if (found != kNone) return found;
      }
    }
    for (std::uint32_t count = 1; count <= nodes.max_devices(); ++count) {
      for (TypeId type = 0; type < nodes.type_count(); ++type) {
        if (shape.type_rank[type] != rank || !TypeAllowed(ref.job, shape, type)) continue;
        const BankId found = look(nodes.WithUnoccupied(type, count, mode));
        if (found != kNone) return found;
      }
    }
  }
  return kNone;
}

// Nodes without GPUs first, the fullest by cores.
BankId Placement::PickHost(const Shape& shape, Mode mode) {
  for (const bool with_gpus : {false, true}) {
    const auto& nodes = cluster_.nodes().FullestByCores(with_gpus, mode);
    for (auto it = nodes.lower_bound({shape.host[kHostCpu], 0}); it != nodes.end(); ++it) {
      if (Fits(shape, it->second, mode)) return it->second;
    }
  }
  return kNone;
}

BankId Placement::PickNear(WorkerRef ref, std::uint32_t together, Mode mode) {
  const auto& nodes = cluster_.nodes();
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  const auto& gpu = shape.spec.request.gpu;
  const Scope& narrowest = scopes_.back();
  const auto& domain = cluster_.topology().level(narrowest.level).domains[narrowest.domain];
  using Rank = std::array<std::int64_t, 5>;
  Rank best_rank{};
  BankId best = kNone;
  for (const NodeId node : domain.nodes) {
    const auto& state = nodes.node(node);
    for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
      const Bank& bank = nodes.bank(b);
      if (!Fits(shape, b, mode) || !TypeAllowed(ref.job, shape, bank.type)) continue;
      const auto open = bank.unoccupied[static_cast<std::size_t>(mode)] & ScopeDevices();
      const std::int64_t free = std::popcount(open);
      Rank rank{};
      if (gpu.kind == GpuKind::kNone || gpu.devices == 0) {
        rank = {0, 0, state.device_count > 0 ? 1 : 0, nodes.HostFree(node, kHostCpu, mode), b};
      } else if (gpu.kind == GpuKind::kWhole) {
        const auto slots = free / gpu.devices;
        if (slots == 0) continue;
        const bool all = slots >= together;
        rank = {shape.type_rank[bank.type], 0, all ? 0 : -slots, free, b};
      } else {
        const auto devices = ChooseShared(ref, shape, b, mode);
        if (devices == 0) continue;
        const bool opens = (devices & open) != 0;
        const bool by_worth = cluster_.policy().place_by_worth;
        const auto fall = by_worth ? cluster_.worth().worth().Fall(shape, b, mode) : 0;
        rank = {shape.type_rank[bank.type], fall, opens ? 1 : 0,
                opens ? free : bank.max_room[static_cast<std::size_t>(mode)], b};
      }
      if (best == kNone || rank < best_rank) {
        best = b;
        best_rank = rank;
      }
    }
  }
  return best;
}

void Placement::ListNearlyFitting(WorkerRef ref, Mode mode, std::vector<BankId>& out) const {
  const auto& nodes = cluster_.nodes();
  const Shape& shape = cluster_.shapes()[cluster_.worker(ref).shape];
  const auto add = [&](BankId b) {
    if (cluster_.shapes().SlotsOn(shape, b, Mode::kEmptied) == 0) return false;
    if (std::find(out.begin(), out.end(), b) == out.end()) out.push_back(b);
    return true;
  };
  if (shape.spec.request.gpu.kind == GpuKind::kNone) {
    for (const bool with_gpus : {false, true}) {
      std::size_t added = 0;
      const auto& by_cores = nodes.FullestByCores(with_gpus, mode);
      for (auto it = by_cores.rbegin(); it != by_cores.rend() && added < kNearlyFitting; ++it) {
        added += add(it->second) ? 1 : 0;
      }
    }
    return;
  }
  for (TypeId type = 0; type < nodes.type_count(); ++type) {
    if (shape.type_rank[type] == kNone || !TypeAllowed(ref.job, shape, type)) continue;
    std::size_t looked = 0;
    for (std::uint32_t count = nodes.max_devices() + 1; count-- > 0;) {
      const Bits& banks = nodes.WithUnoccupied(type, count, mode);
      for (BankId b = banks.Next(0); b != kNone && looked < kNearlyFitting; b = banks.Next(b + 1)) {
        ++steps_;
        looked += add(b) ? 1 : 0;
      }
    }
  }
}

// The GPUs that a share goes to on this bank; 0: it does not fit. A GPU with another worker of the
// same job is left out unless the job allows it.
std::uint64_t Placement::ChooseShared(WorkerRef ref, const Shape& shape, BankId id, Mode mode) {
  std::uint64_t usable = cluster_.nodes().bank(id).mask & ScopeDevices();
  if (!shape.spec.same_device) {
    for (const auto& other : cluster_.job(ref.job).workers) {
      if (other.place.bank == id && other.place.Holds()) usable &= ~other.place.devices;
    }
  }
  return cluster_.worth().worth().ChooseDevices(shape, id, mode, usable);
}

}  // namespace muster::engine

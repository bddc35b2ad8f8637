#include "engine/worth.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace muster::engine {

using model::GpuKind;

namespace {

// Rates have so many binary places, and are bounded with what is free so that products fit.
constexpr int kRatePlaces = 12;
constexpr std::int64_t kMostRate = 1LL << 36;
constexpr std::int64_t kMostFree = (1LL << 27) - 1;
constexpr int kMemoryShift = 20;  // memory is counted in MiB

std::int64_t Counted(std::size_t dim, std::int64_t amount) {
  return dim == kHostMemory ? amount >> kMemoryShift : amount;
}

std::int64_t PerDevice(std::int64_t charge, const Shape& shape) {
  return charge / std::max(1, shape.spec.request.gpu.devices);
}

}  // namespace

// All shares are multiples of `step`, so what is left of a room beyond one is wasted anyway.
void WasteTable::Learn(std::span<const Share> shares, bool whole) {
  for (std::size_t room = 0; room < waste_.size(); ++room) {
    waste_[room] = static_cast<std::int64_t>(room) * kPart;
  }
  if (whole) waste_.back() = 0;
  std::int64_t step = kMilli, sum = 0;
  for (const Share& share : shares) {
    step = std::gcd(step, share.milli);
    sum += share.weight;
  }
  if (sum == 0) return;
  const auto rooms = static_cast<std::size_t>(kMilli / step);
  std::vector<std::int64_t> now(rooms + 1), later;
  for (std::size_t i = 0; i <= rooms; ++i) now[i] = waste_[i * static_cast<std::size_t>(step)];
  for (std::int64_t offer = 0; offer < offers_; ++offer) {
    later = now;
    for (std::size_t i = 1; i <= rooms; ++i) {
      std::int64_t mean = 0;
      for (const Share& share : shares) {
        const auto taken = static_cast<std::size_t>(share.milli / step);
        mean += share.weight * (taken > i ? later[i] : std::min(later[i], later[i - taken]));
      }
      now[i] = mean / sum;
    }
  }
  for (std::int64_t room = 0; room <= kMilli; ++room) {
    waste_[static_cast<std::size_t>(room)] =
        now[static_cast<std::size_t>(room / step)] + room % step * kPart;
  }
}

Worth::Target Worth::TargetOf(const ShapeTable::Target& target) const {
  const Shape& shape = shapes_[target.shape];
  const auto& spec = shape.spec;
  Target out;
  out.shape = target.shape;
  out.confined = !spec.labels.empty() || spec.node_names || spec.nowhere;
  out.devices = spec.request.gpu.devices;
  out.weight = target.weight;
  const auto charge = shape.cost[kGpuDim];
  if (spec.request.gpu.kind != GpuKind::kMemory) out.milli = PerDevice(charge, shape);
  for (std::size_t d = 0; d < nodes_.host_dims(); ++d) {
    if (shape.host[d] == 0) continue;
    const auto asked = std::max<std::int64_t>(1, Counted(d, shape.host[d]));
    out.gpu_per[d] = std::clamp<std::int64_t>(((charge * WasteTable::kPart) << kRatePlaces) / asked,
                                              1, kMostRate);
  }
  return out;
}

bool Worth::Learn() {
  if (learnt_ == shapes_.demand_version() && targets_.size() == nodes_.type_count()) return false;
  learnt_ = shapes_.demand_version();
  for (auto& known : known_) known.clear();
  targets_.assign(nodes_.type_count(), {});
  weight_ = 0;
  std::vector<WasteTable::Share> shares;
  bool whole = false;
  for (const auto& demanded : shapes_.Targets()) {
    const Shape& shape = shapes_[demanded.shape];
    const Target target = TargetOf(demanded);
    weight_ += target.weight;
    const auto milli = PerDevice(shape.cost[kGpuDim], shape);
    if (milli >= kMilli) {
      whole = true;
    } else if (milli > 0) {
      shares.push_back({milli, target.weight});
    }
    for (TypeId type = 0; type < targets_.size(); ++type) {
      if (shape.type_rank[type] != kNone) targets_[type].push_back(target);
    }
  }
  waste_.Learn(shares, whole);
  return true;
}

std::int64_t Worth::RoomMilli(BankId id, std::uint32_t device, Mode mode,
                              const Taken& taken) const {
  const Bank& bank = nodes_.bank(id);
  const auto left = nodes_.Room(id, device, mode);
  if (left <= 0) return 0;
  const auto room = left * kMilli / bank.memory;
  return (taken.devices >> device & 1) == 0 ? room : std::max<std::int64_t>(0, room - taken.milli);
}

Worth::Spare Worth::SpareOf(BankId id, Mode mode, const Taken& taken) const {
  const Bank& bank = nodes_.bank(id);
  const auto m = static_cast<std::size_t>(mode);
  const auto open = bank.unoccupied[m] & ~taken.devices;
  Spare spare;
  const auto add = [&](std::int64_t room, int times) {
    spare.fillable += times * (room * WasteTable::kPart - waste_.At(room));
    spare.largest = std::max(spare.largest, room);
  };
  spare.idle = std::popcount(open);
  if (spare.idle > 0) add(kMilli, spare.idle);
  auto shared = taken.devices;  // and those that had room on them before
  if (bank.max_room[m] > 0) shared |= bank.mask & ~open;
  for (; shared != 0; shared &= shared - 1) {
    add(RoomMilli(id, static_cast<std::uint32_t>(std::countr_zero(shared)), mode, taken), 1);
  }
  return spare;
}

HostVec Worth::FreeOf(NodeId node, Mode mode, const HostVec& taken) const {
  HostVec free{};
  for (std::size_t d = 0; d < nodes_.host_dims(); ++d) {
    const auto left = Counted(d, nodes_.HostFree(node, d, mode) - taken[d]);
    free[d] = std::clamp<std::int64_t>(left, 0, kMostFree);
  }
  return free;
}

int Worth::CountWithRoom(BankId id, Mode mode, const Taken& taken, std::int64_t milli) const {
  int count = 0;
  for (std::uint64_t rest = nodes_.bank(id).mask; rest != 0; rest &= rest - 1) {
    const auto device = static_cast<std::uint32_t>(std::countr_zero(rest));
    count += RoomMilli(id, device, mode, taken) >= milli ? 1 : 0;
  }
  return count;
}

std::int64_t Worth::Value(BankId id, Mode mode, const Taken& taken, const HostVec& free) const {
  const Bank& bank = nodes_.bank(id);
  if (bank.type == kNone) return 0;
  const Spare spare = SpareOf(id, mode, taken);
  if (spare.fillable <= 0) return 0;
  const auto dims = nodes_.host_dims();
  std::int64_t value = 0;
  for (const Target& target : targets_[bank.type]) {
    if (spare.largest < target.milli) continue;
    const Shape& shape = shapes_[target.shape];
    if (target.confined && !shape.allowed[id]) continue;
    const auto milli =
        target.milli > 0 ? target.milli : PerDevice(shapes_.ChargeOn(shape, bank), shape);
    if (spare.largest < milli) continue;
    if (milli >= kMilli) {
      if (spare.idle < target.devices) continue;
    } else if (target.devices > 1 && CountWithRoom(id, mode, taken, milli) < target.devices) {
      continue;
    }
    auto usable = spare.fillable;
    for (std::size_t d = 0; d < dims; ++d) {
      if (target.gpu_per[d] == 0) continue;
      const bool enough = free[d] >= Counted(d, shape.host[d]);
      usable = enough ? std::min(usable, (free[d] * target.gpu_per[d]) >> kRatePlaces) : 0;
    }
    value += target.weight * usable;
  }
  return value;
}

Worth::Taken Worth::TakenBy(const Shape& shape, BankId id, Mode mode) const {
  const auto& gpu = shape.spec.request.gpu;
  const Bank& bank = nodes_.bank(id);
  if (gpu.kind == GpuKind::kNone) return {};
  if (gpu.kind != GpuKind::kWhole) {
    return {ChooseDevices(shape, id, mode, bank.mask),
            PerDevice(shapes_.ChargeOn(shape, bank), shape)};
  }
  Taken taken{0, kMilli};
  auto open = bank.unoccupied[static_cast<std::size_t>(mode)];
  for (int i = 0; i < gpu.devices && open != 0; ++i, open &= open - 1) {
    taken.devices |= open & ~(open - 1);
  }
  return taken;
}

std::int64_t Worth::ValueOf(NodeId node, Mode mode) {
  auto& known = known_[static_cast<std::size_t>(mode)];
  known.resize(nodes_.size());
  Known& here = known[node];
  const auto& state = nodes_.node(node);
  const auto version = nodes_.log(mode).version(state.first_bank);
  if (here.value >= 0 && here.version == version) return here.value;
  here = {0, version};
  const HostVec free = FreeOf(node, mode, {});
  for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
    here.value += Value(b, mode, {}, free);
  }
  return here.value;
}

std::int64_t Worth::Fall(const Shape& shape, BankId id, Mode mode) {
  if (weight_ == 0) return 0;
  const NodeId node = nodes_.bank(id).node;
  std::int64_t fall = ValueOf(node, mode);
  if (fall == 0) return 0;
  const HostVec free = FreeOf(node, mode, shape.host);
  const Taken taken = TakenBy(shape, id, mode);
  const auto& state = nodes_.node(node);
  for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
    fall -= Value(b, mode, b == id ? taken : Taken{}, free);
  }
  const auto step = weight_ * rules_.step_milli * WasteTable::kPart;
  return std::max<std::int64_t>(0, (fall + step - 1) / step);
}

// Of the GPUs that nobody is on the first stands for all.
std::uint64_t Worth::ChooseDevices(const Shape& shape, BankId id, Mode mode,
                                   std::uint64_t usable) const {
  const Bank& bank = nodes_.bank(id);
  const auto units = shapes_.UnitsOn(shape, bank);
  if (units > bank.memory || bank.memory <= 0) return 0;
  const auto milli = PerDevice(shapes_.ChargeOn(shape, bank), shape);
  const auto open = bank.unoccupied[static_cast<std::size_t>(mode)];
  std::uint64_t chosen = 0;
  for (int i = 0; i < shape.spec.request.gpu.devices; ++i) {
    std::uint32_t best = kNone;
    std::pair<std::int64_t, std::int64_t> least;  // growth, room; an unoccupied GPU has the most
    const auto offer = [&](std::uint32_t device, std::int64_t room) {
      std::int64_t growth = 0;
      if (rules_.by_waste) {
        const auto here = RoomMilli(id, device, mode, {});
        growth = waste_.Growth(here, std::min(here, milli));
      }
      if (best != kNone && std::pair(growth, room) >= least) return;
      best = device;
      least = {growth, room};
    };
    for (auto rest = usable & ~open & ~chosen; rest != 0; rest &= rest - 1) {
      const auto device = static_cast<std::uint32_t>(std::countr_zero(rest));
      const auto room = nodes_.Room(id, device, mode);
      if (room >= std::max<std::int64_t>(1, units)) offer(device, room);
    }
    const auto fresh = usable & open & ~chosen;
    if (fresh != 0) offer(static_cast<std::uint32_t>(std::countr_zero(fresh)), kUnlimited);
    if (best == kNone) return 0;
    chosen |= 1ULL << best;
  }
  return chosen;
}

}  // namespace muster::engine

#include "engine/shapes.h"

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "base/wide.h"

namespace muster::engine {

using model::GpuKind;

namespace {

// A memory request is charged in whole hundredths of the device, rounded up.
std::int64_t MemoryCharge(std::int64_t bytes, std::int64_t device_bytes) {
  if (device_bytes <= 0) return kMilli;
  const Wide hundredths = (static_cast<Wide>(bytes) * 100 + device_bytes - 1) / device_bytes;
  return static_cast<std::int64_t>(hundredths) * (kMilli / 100);
}

// The largest that is not more; 0 for 0.
std::int64_t PowerOfFour(std::int64_t amount) {
  if (amount <= 0) return 0;
  const auto places = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(amount))) - 1;
  return std::int64_t{1} << (places & ~1);
}

// Shapes with a smaller power of four stand for nothing.
std::int64_t LeastWeight(std::int64_t all) {
  return std::max<std::int64_t>(1, PowerOfFour(all) / 256);
}

bool Matches(const model::Labels& wanted, const model::Labels& labels) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& want) {
    const auto found = labels.find(want.first);
    return found != labels.end() && found->second == want.second;
  });
}

}  // namespace

ShapeId ShapeTable::Intern(ShapeSpec spec, std::size_t dims,
                           const std::vector<std::size_t>& type_dims,
                           std::size_t first_countable_dim) {
  if (const auto found = by_spec_.find(spec); found != by_spec_.end()) return found->second;
  const auto id = static_cast<ShapeId>(shapes_.size());
  Shape shape;
  shape.spec = spec;
  shape.host[kHostCpu] = spec.request.cpu_milli;
  shape.host[kHostMemory] = spec.request.memory_bytes;
  for (std::size_t i = 0; i < nodes_.host_names().size(); ++i) {
    const auto found = spec.request.other.find(nodes_.host_names()[i]);
    if (found != spec.request.other.end()) shape.host[kFirstHostOther + i] = found->second;
  }
  shape.anywhere =
      spec.gpu_types.empty() && spec.labels.empty() && !spec.node_names && !spec.nowhere;
  for (BankId b = 0; b < nodes_.bank_count(); ++b) Allow(shape, b);
  FillCosts(shape, dims, type_dims, first_countable_dim);
  shapes_.push_back(std::move(shape));
  counts_.emplace_back();
  demand_.push_back(0);
  by_spec_.emplace(std::move(spec), id);
  return id;
}

void ShapeTable::AddDemand(ShapeId id, std::int64_t workers) {
  const auto before = demand_[id];
  demand_[id] += workers;
  if (shapes_[id].spec.request.gpu.kind == GpuKind::kNone) return;
  const auto all_before = gpu_demand_;
  gpu_demand_ += workers;
  const auto least = LeastWeight(gpu_demand_);
  const auto was = PowerOfFour(before), is = PowerOfFour(demand_[id]);
  if (least != LeastWeight(all_before) || (was != is && std::max(was, is) >= least)) {
    ++demand_version_;
  }
}

const std::vector<ShapeTable::Target>& ShapeTable::Targets() {
  if (targets_version_ == demand_version_) return targets_;
  targets_version_ = demand_version_;
  targets_.clear();
  const auto least = LeastWeight(gpu_demand_);
  for (ShapeId id = 0; id < shapes_.size(); ++id) {
    const auto weight = PowerOfFour(demand_[id]);
    const bool gpus = shapes_[id].spec.request.gpu.kind != GpuKind::kNone;
    if (gpus && weight >= least) targets_.push_back({id, weight / least});
  }
  // Ids depend on who came first; the order must not.
  const auto last =
      targets_.begin() + static_cast<std::ptrdiff_t>(std::min(kMostTargets, targets_.size()));
  std::partial_sort(targets_.begin(), last, targets_.end(), [&](const Target& a, const Target& b) {
    return a.weight != b.weight ? a.weight > b.weight
                                : shapes_[a.shape].spec < shapes_[b.shape].spec;
  });
  targets_.erase(last, targets_.end());
  return targets_;
}

void ShapeTable::NodeAdded(NodeId id) {
  const auto& node = nodes_.node(id);
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    for (std::uint32_t i = 0; i < node.bank_count; ++i) Allow(shapes_[s], node.first_bank + i);
    for (auto& counts : counts_[s]) counts.slots.clear();
  }
}

void ShapeTable::Allow(Shape& shape, BankId bank) {
  const auto& spec = shape.spec;
  const Bank& state = nodes_.bank(bank);
  const auto& node = nodes_.spec(state.node);
  while (shape.type_rank.size() < nodes_.type_count()) {
    const auto type = static_cast<TypeId>(shape.type_rank.size());
    const auto place =
        std::find(spec.gpu_types.begin(), spec.gpu_types.end(), nodes_.type_name(type));
    const auto rank = static_cast<std::uint32_t>(place - spec.gpu_types.begin());
    shape.type_rank.push_back(spec.gpu_types.empty()          ? 0
                              : place == spec.gpu_types.end() ? kNone
                                                              : rank);
  }
  bool allowed = !spec.nowhere && Matches(spec.labels, node.labels);
  if (spec.node_names) {
    allowed &= std::find(spec.node_names->begin(), spec.node_names->end(), node.name) !=
               spec.node_names->end();
  }
  if (shape.allowed.size() <= bank) shape.allowed.resize(bank + 1, false);
  shape.allowed[bank] = allowed;
}

void ShapeTable::RefreshCosts(std::size_t dims, const std::vector<std::size_t>& type_dims,
                              std::size_t first_countable_dim) {
  for (auto& shape : shapes_) FillCosts(shape, dims, type_dims, first_countable_dim);
  ++demand_version_;
}

void ShapeTable::FillCosts(Shape& shape, std::size_t dims,
                           const std::vector<std::size_t>& type_dims,
                           std::size_t first_countable_dim) {
  shape.cost = Vec{};
  Bank smallest;
  smallest.memory = nodes_.smallest_device_memory();
  shape.cost[kGpuDim] = ChargeOn(shape, smallest);
  shape.cost[kCpuDim] = shape.host[kHostCpu];
  shape.cost[kMemoryDim] = shape.host[kHostMemory];
  for (std::size_t i = 0; i < nodes_.host_names().size(); ++i) {
    shape.cost[first_countable_dim + i] = shape.host[kFirstHostOther + i];
  }
  shape.request = shape.cost;
  for (TypeId type = 0; type < type_dims.size(); ++type) {
    const auto dim = type_dims[type];
    if (dim >= dims || shape.type_rank[type] == kNone) continue;
    shape.request[dim] = shape.cost[kGpuDim];
    if (shape.spec.gpu_types.size() == 1) shape.cost[dim] = shape.cost[kGpuDim];
  }
}

std::int64_t ShapeTable::UnitsOn(const Shape& shape, const Bank& bank) const {
  const auto& gpu = shape.spec.request.gpu;
  if (gpu.kind == GpuKind::kShare) {
    return static_cast<std::int64_t>(static_cast<Wide>(bank.memory) * gpu.share_milli / kMilli);
  }
  return gpu.kind == GpuKind::kMemory ? gpu.memory_bytes : bank.memory;
}

std::int64_t ShapeTable::ChargeOn(const Shape& shape, const Bank& bank) const {
  const auto& gpu = shape.spec.request.gpu;
  switch (gpu.kind) {
    case GpuKind::kNone:
      return 0;
    case GpuKind::kWhole:
      return gpu.devices * kMilli;
    case GpuKind::kShare:
      return gpu.devices * gpu.share_milli;
    case GpuKind::kMemory:
      return gpu.devices * MemoryCharge(gpu.memory_bytes, bank.memory);
  }
  return 0;
}

std::uint32_t ShapeTable::GpuSlots(const Shape& shape, const Bank& bank, BankId id,
                                   Mode mode) const {
  const auto& gpu = shape.spec.request.gpu;
  const auto m = static_cast<std::size_t>(mode);
  const auto devices = static_cast<std::uint32_t>(gpu.devices);
  const auto unoccupied = static_cast<std::uint32_t>(std::popcount(bank.unoccupied[m]));
  if (gpu.kind == GpuKind::kWhole) return unoccupied / devices;
  const auto units = UnitsOn(shape, bank);
  if (units > bank.memory || bank.memory == 0) return 0;
  const auto per_device = [&](std::int64_t room) -> std::uint32_t {
    if (room < units) return 0;
    return shape.spec.same_device && units > 0 ? static_cast<std::uint32_t>(room / units) : 1;
  };
  std::uint32_t fits = unoccupied * per_device(bank.memory);
  if (bank.max_room[m] >= units) {
    for (std::uint64_t rest = bank.mask & ~bank.unoccupied[m]; rest != 0; rest &= rest - 1) {
      fits += per_device(nodes_.Room(id, static_cast<std::uint32_t>(std::countr_zero(rest)), mode));
    }
  }
  return fits / devices;
}

std::uint32_t ShapeTable::SlotsOn(const Shape& shape, BankId id, Mode mode) const {
  return nodes_.node_of(id).Usable() ? SlotsInService(shape, id, mode) : 0;
}

std::uint32_t ShapeTable::SlotsInService(const Shape& shape, BankId id, Mode mode) const {
  const Bank& bank = nodes_.bank(id);
  const auto& node = nodes_.node(bank.node);
  if (!shape.allowed[id]) return 0;
  const auto m = static_cast<std::size_t>(mode);
  std::int64_t slots = std::max(0, node.max_workers - node.workers[m]);
  if (shape.spec.request.gpu.kind != GpuKind::kNone) {
    if (bank.type == kNone || shape.type_rank[bank.type] == kNone) return 0;
    slots = std::min<std::int64_t>(slots, GpuSlots(shape, bank, id, mode));
  } else if (id != node.first_bank) {
    return 0;  // a worker without GPUs is counted once a node
  }
  for (std::size_t d = 0; slots > 0 && d < nodes_.host_dims(); ++d) {
    if (shape.host[d] == 0) continue;
    const auto free = std::max<std::int64_t>(0, nodes_.HostFree(bank.node, d, mode));
    slots = std::min(slots, free / shape.host[d]);
  }
  return static_cast<std::uint32_t>(slots);
}

Filter ShapeTable::Test(const Shape& shape, BankId id, Mode mode) const {
  const Bank& bank = nodes_.bank(id);
  const auto& node = nodes_.node(bank.node);
  const auto m = static_cast<std::size_t>(mode);
  if (!node.up) return Filter::kDown;
  if (!node.Usable()) return Filter::kCordoned;
  if (!shape.allowed[id]) return Filter::kConfined;
  if (shape.spec.request.gpu.kind != GpuKind::kNone) {
    if (bank.type == kNone || shape.type_rank[bank.type] == kNone) return Filter::kGpuType;
    if (UnitsOn(shape, bank) > bank.memory) return Filter::kGpuMemory;
    if (GpuSlots(shape, bank, id, mode) == 0) return Filter::kGpus;
  }
  if (node.workers[m] >= node.max_workers) return Filter::kWorkers;
  for (std::size_t d = 0; d < nodes_.host_dims(); ++d) {
    if (shape.host[d] <= std::max<std::int64_t>(0, nodes_.HostFree(bank.node, d, mode))) continue;
    return d == kHostCpu ? Filter::kCores : d == kHostMemory ? Filter::kMemory : Filter::kCountable;
  }
  return Filter::kFits;
}

void ShapeTable::Rebuild(const Shape& shape, Mode mode, Counts& counts) {
  counts.slots.assign(nodes_.bank_count(), 0);
  counts.total = 0;
  for (auto& [level, sums] : counts.by_domain) {
    sums.assign(topology_.level(level).domains.size(), 0);
  }
  for (BankId b = 0; b < nodes_.bank_count(); ++b) {
    const auto slots = SlotsOn(shape, b, mode);
    counts.slots[b] = slots;
    counts.total += slots;
    for (auto& [level, sums] : counts.by_domain) {
      const auto domain = topology_.level(level).domain_of[nodes_.bank(b).node];
      if (domain != kNone) sums[domain] += slots;
    }
  }
  counts.seen = nodes_.log(mode).end();
}

ShapeTable::Counts& ShapeTable::CatchUp(ShapeId id, Mode mode) {
  Counts& counts = counts_[id][static_cast<std::size_t>(mode)];
  const Shape& shape = shapes_[id];
  const BankLog& log = nodes_.log(mode);
  if (counts.slots.size() != nodes_.bank_count() || counts.seen < log.start()) {
    Rebuild(shape, mode, counts);
    return counts;
  }
  for (; counts.seen < log.end(); ++counts.seen) {
    if (log.superseded(counts.seen)) continue;
    const BankId bank = log.at(counts.seen);
    const auto now = SlotsOn(shape, bank, mode);
    if (now == counts.slots[bank]) continue;
    const auto change = static_cast<std::int64_t>(now) - counts.slots[bank];
    counts.slots[bank] = now;
    counts.total += change;
    for (auto& [level, sums] : counts.by_domain) {
      const auto domain = topology_.level(level).domain_of[nodes_.bank(bank).node];
      if (domain != kNone) sums[domain] += change;
    }
  }
  return counts;
}

std::int64_t ShapeTable::Slots(ShapeId shape, Mode mode) { return CatchUp(shape, mode).total; }

const std::vector<std::uint32_t>& ShapeTable::SlotsByBank(ShapeId shape, Mode mode) {
  return CatchUp(shape, mode).slots;
}

std::int64_t ShapeTable::SlotsIn(ShapeId shape, LevelId level, DomainId domain, Mode mode) {
  Counts& counts = CatchUp(shape, mode);
  auto [found, added] = counts.by_domain.try_emplace(level);
  if (added) Rebuild(shapes_[shape], mode, counts);
  return found->second[domain];
}

}  // namespace muster::engine

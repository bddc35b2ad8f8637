#include "engine/nodes.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/check.h"
#include "base/units.h"

namespace muster::engine {
namespace {

constexpr std::size_t kLogKeep = 1U << 16;  // older changes make an index rebuild itself instead

std::uint32_t Count64(std::uint64_t mask) {
  return static_cast<std::uint32_t>(std::popcount(mask));
}

std::int64_t FreeMilliOf(const Bank& bank, std::size_t mode) {
  return std::popcount(bank.unoccupied[mode]) * kMilli + bank.room_milli[mode];
}

}  // namespace

void BankLog::Note(BankId bank) {
  if (banks_.size() >= 2 * kLogKeep) {
    banks_.erase(banks_.begin(), banks_.begin() + kLogKeep);
    start_ += kLogKeep;
  }
  if (last_.size() <= bank) last_.resize(bank + 1, kNever);
  last_[bank] = end();
  banks_.push_back(bank);
}

NodeTable::NodeTable(std::vector<std::string> host_names) : host_names_(std::move(host_names)) {
  MUSTER_CHECK(host_dims() <= kMaxHostDims, "too many kinds of countable resources");
}

TypeId NodeTable::FindType(const std::string& name) const {
  const auto found = std::find(type_names_.begin(), type_names_.end(), name);
  return found == type_names_.end() ? kNone : static_cast<TypeId>(found - type_names_.begin());
}

TypeId NodeTable::InternType(const std::string& name) {
  if (const TypeId found = FindType(name); found != kNone) return found;
  type_names_.push_back(name);
  usable_gpus_.push_back(0);
  for (auto& sums : free_milli_) sums.push_back(0);
  for (std::size_t m = 0; m < kIndexedModes; ++m) {
    by_unoccupied_[m].emplace_back(max_devices_ + 1);
    by_room_[m].emplace_back(kRoomClasses + 1);
  }
  GrowIndexes();
  return static_cast<TypeId>(type_names_.size() - 1);
}

void NodeTable::GrowIndexes() {
  const auto size = static_cast<std::uint32_t>(std::bit_ceil(banks_.size() + 64));
  for (std::size_t m = 0; m < kIndexedModes; ++m) {
    for (auto& buckets : by_unoccupied_[m]) {
      if (buckets.size() < max_devices_ + 1) buckets.resize(max_devices_ + 1);
      for (auto& bits : buckets) bits.Resize(size);
    }
    for (auto& buckets : by_room_[m]) {
      for (auto& bits : buckets) bits.Resize(size);
    }
  }
}

NodeId NodeTable::Add(const model::Node& node) {
  MUSTER_CHECK(node.gpus.size() <= 64, "at most 64 GPUs on a node");
  const auto id = static_cast<NodeId>(nodes_.size());
  NodeState state;
  state.first_bank = static_cast<BankId>(banks_.size());
  state.first_device = static_cast<std::uint32_t>(devices_.size());
  state.device_count = static_cast<std::uint32_t>(node.gpus.size());
  state.cordoned = node.cordoned;
  state.draining = node.draining;
  state.max_workers = node.max_workers;
  state.capacity[kHostCpu] = node.cpu_milli;
  state.capacity[kHostMemory] = node.memory_bytes;
  for (std::size_t i = 0; i < host_names_.size(); ++i) {
    const auto found = node.other.find(host_names_[i]);
    state.capacity[kFirstHostOther + i] = found == node.other.end() ? 0 : found->second;
  }
  auto layout = DeviceLayout::Of(node);
  const auto known = std::find(layouts_.begin(), layouts_.end(), layout);
  state.layout = static_cast<std::uint32_t>(known - layouts_.begin());
  if (known == layouts_.end()) layouts_.push_back(std::move(layout));
  devices_.resize(devices_.size() + node.gpus.size());
  nodes_.push_back(state);
  specs_.push_back(node);
  std::map<std::pair<std::string, std::int64_t>, std::uint64_t> banks;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    banks[{node.gpus[i].type, node.gpus[i].memory_bytes}] |= 1ULL << i;
  }
  max_devices_ = std::max(max_devices_, state.device_count);
  for (const auto& [key, mask] : banks) AddBank(id, InternType(key.first), key.second, mask);
  if (banks.empty()) AddBank(id, kNone, 0, 0);
  GrowIndexes();
  IndexNode(id, true);
  Count(id, +1);
  return id;
}

void NodeTable::AddBank(NodeId id, TypeId type, std::int64_t memory, std::uint64_t mask) {
  Bank bank;
  bank.node = id;
  bank.type = type;
  bank.memory = memory;
  bank.mask = mask;
  bank.unoccupied.fill(mask);
  banks_.push_back(bank);
  ++nodes_[id].bank_count;
  if (memory > 0 && (smallest_memory_ == 0 || memory < smallest_memory_)) {
    smallest_memory_ = memory;
  }
}

// Usable nodes count towards what the cluster has; others hold their workers but promise nothing.
void NodeTable::Count(NodeId id, int sign) {
  const auto& state = nodes_[id];
  if (!state.Usable()) return;
  for (std::size_t d = 0; d < host_dims(); ++d) usable_host_[d] += sign * state.capacity[d];
  for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
    const Bank& bank = banks_[b];
    if (bank.type == kNone) continue;
    usable_gpus_[bank.type] += sign * static_cast<std::int64_t>(Count64(bank.mask));
    for (std::size_t m = 0; m < kModes; ++m) {
      free_milli_[m][bank.type] += sign * FreeMilliOf(bank, m);
    }
  }
}

std::int64_t NodeTable::usable_gpus() const {
  std::int64_t sum = 0;
  for (const auto count : usable_gpus_) sum += count;
  return sum;
}

void NodeTable::SetUp(NodeId node, bool up) {
  if (nodes_[node].up == up) return;
  Count(node, -1);
  IndexNode(node, false);
  nodes_[node].up = up;
  IndexNode(node, true);
  Count(node, +1);
  NoteNode(nodes_[node], kInAll);
}

void NodeTable::SetCordoned(NodeId node, bool cordoned, bool draining) {
  Count(node, -1);
  IndexNode(node, false);
  nodes_[node].cordoned = cordoned;
  nodes_[node].draining = draining;
  IndexNode(node, true);
  Count(node, +1);
  NoteNode(nodes_[node], kInAll);
}

BankId NodeTable::BankOfDevices(NodeId id, std::uint64_t devices) const {
  const auto& state = nodes_[id];
  for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
    if ((banks_[b].mask & devices) != 0) return b;
  }
  return state.first_bank;
}

std::uint32_t NodeTable::RoomClass(std::int64_t room, std::int64_t memory) {
  if (room <= 0 || memory <= 0) return 0;
  const auto share = (room * static_cast<std::int64_t>(kRoomClasses) + memory - 1) / memory;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(share, kRoomClasses));
}

std::int64_t NodeTable::Room(BankId id, std::uint32_t device_index, Mode mode) const {
  const Bank& bank = banks_[id];
  const auto& device = devices_[nodes_[bank.node].first_device + device_index];
  return bank.memory - device.used[static_cast<std::size_t>(mode)];
}

bool NodeTable::HostFits(NodeId id, const HostVec& need, Mode mode) const {
  const auto& state = nodes_[id];
  const auto m = static_cast<std::size_t>(mode);
  if (state.workers[m] >= state.max_workers) return false;
  for (std::size_t d = 0; d < host_dims(); ++d) {
    if (need[d] > state.capacity[d] - state.used[m][d]) return false;
  }
  return true;
}

void NodeTable::IndexNode(NodeId id, bool insert) {
  const auto& state = nodes_[id];
  for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) Index(b, insert);
  if (!keep_cores_ || !state.Usable()) return;
  const std::size_t with_gpus = state.device_count > 0 ? 1 : 0;
  for (std::size_t m = 0; m < kIndexedModes; ++m) {
    const std::pair key{state.capacity[kHostCpu] - state.used[m][kHostCpu], state.first_bank};
    auto& tree = by_cores_[m][with_gpus];
    if (insert) {
      tree.insert(key);
    } else {
      tree.erase(key);
    }
  }
}

void NodeTable::Index(BankId id, bool insert) {
  const Bank& bank = banks_[id];
  if (bank.type == kNone || !nodes_[bank.node].Usable()) return;
  for (std::size_t m = 0; m < kIndexedModes; ++m) {
    auto& whole = by_unoccupied_[m][bank.type][Count64(bank.unoccupied[m])];
    const auto room_class = RoomClass(bank.max_room[m], bank.memory);
    auto& room = by_room_[m][bank.type][room_class];
    if (insert) {
      whole.Insert(id);
      if (room_class > 0) room.Insert(id);
    } else {
      whole.Erase(id);
      if (room_class > 0) room.Erase(id);
    }
  }
}

void NodeTable::KeepCoreIndex() {
  if (keep_cores_) return;
  keep_cores_ = true;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    IndexNode(id, false);
    IndexNode(id, true);
  }
}

void NodeTable::NoteNode(const NodeState& node, ModeSet modes) {
  for (std::size_t m = 0; m < kModes; ++m) {
    if ((modes >> m & 1) == 0) continue;
    for (std::uint32_t i = 0; i < node.bank_count; ++i) logs_[m].Note(node.first_bank + i);
  }
}

void NodeTable::MeasureRooms(BankId id, std::size_t mode) {
  Bank& bank = banks_[id];
  std::int64_t largest = 0, sum = 0;
  for (std::uint64_t rest = bank.mask & ~bank.unoccupied[mode]; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(rest));
    const auto room = std::max<std::int64_t>(0, Room(id, index, static_cast<Mode>(mode)));
    largest = std::max(largest, room);
    sum += bank.memory == 0 ? 0 : room * kMilli / bank.memory;
  }
  bank.max_room[mode] = largest;
  bank.room_milli[mode] = sum;
}

void NodeTable::Occupy(BankId id, const Take& take, ModeSet modes, int sign) {
  Bank& bank = banks_[id];
  NodeState& state = nodes_[bank.node];
  const bool usable = state.Usable();
  if (keep_cores_) {
    IndexNode(bank.node, false);
  } else {
    Index(id, false);
  }
  for (std::size_t m = 0; m < kModes; ++m) {
    if ((modes >> m & 1) == 0) continue;
    state.workers[m] += sign;
    for (std::size_t d = 0; d < host_dims(); ++d) state.used[m][d] += sign * take.host[d];
    if (take.devices == 0) continue;
    const auto before = FreeMilliOf(bank, m);
    for (std::uint64_t rest = take.devices; rest != 0; rest &= rest - 1) {
      const auto index = static_cast<std::uint32_t>(std::countr_zero(rest));
      Device& device = devices_[state.first_device + index];
      device.used[m] += sign * (take.whole ? bank.memory : take.units);
      device.occupants[m] = static_cast<std::uint16_t>(device.occupants[m] + sign);
      const std::uint64_t bit = 1ULL << index;
      bank.unoccupied[m] =
          device.occupants[m] == 0 ? bank.unoccupied[m] | bit : bank.unoccupied[m] & ~bit;
    }
    // A whole worker may have been promised a device that shares are still leaving.
    const bool rest = (bank.mask & ~bank.unoccupied[m]) != 0;
    if (!take.whole || bank.max_room[m] > 0 || (sign < 0 && rest)) MeasureRooms(id, m);
    if (usable) free_milli_[m][bank.type] += FreeMilliOf(bank, m) - before;
  }
  if (keep_cores_) {
    IndexNode(bank.node, true);
  } else {
    Index(id, true);
  }
  NoteNode(state, modes);
}

}  // namespace muster::engine

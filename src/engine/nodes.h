// NodeTable: what every node has, what is taken of it, and the indexes that find room.
//
// The GPUs of one type on one node form a bank; placement works on banks. Occupancy is kept in
// three modes: free (what can start now), future (once leaving workers have gone) and emptied (if
// every preemptible worker went too), so that "would it fit if" is a look-up. Banks are indexed by
// type and number of unoccupied GPUs, and by the largest room on a shared GPU; all indexes change
// with the occupancy in time that does not depend on the size of the cluster. Every change is
// appended to a log, from which other indexes catch up.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/bits.h"
#include "engine/devices.h"
#include "engine/ids.h"
#include "model/node.h"

namespace muster::engine {

enum class Mode : std::uint8_t { kFree, kFuture, kEmptied };
inline constexpr std::size_t kModes = 3;
inline constexpr std::size_t kIndexedModes =
    2;  // free and future are searched, emptied only counted

// In which modes something counts as taken, one bit a mode.
using ModeSet = std::uint8_t;
constexpr ModeSet In(Mode mode) { return static_cast<ModeSet>(1U << static_cast<unsigned>(mode)); }
inline constexpr ModeSet kInAll = In(Mode::kFree) | In(Mode::kFuture) | In(Mode::kEmptied);

inline constexpr std::size_t kMaxHostDims = 6;
inline constexpr std::size_t kHostCpu = 0;
inline constexpr std::size_t kHostMemory = 1;
inline constexpr std::size_t kFirstHostOther = 2;
using HostVec = std::array<std::int64_t, kMaxHostDims>;

// What one worker takes on a bank.
struct Take {
  std::uint64_t devices = 0;  // bit mask within the node
  std::int64_t units = 0;     // bytes of each device; whole devices take all of it
  bool whole = false;
  HostVec host{};
};

struct Device {
  std::array<std::int64_t, kModes> used{};
  std::array<std::uint16_t, kModes> occupants{};
};

struct Bank {
  NodeId node = kNone;
  TypeId type = kNone;  // kNone: no GPU at all
  std::int64_t memory = 0;
  std::uint64_t mask = 0;  // its devices within the node
  std::array<std::uint64_t, kModes> unoccupied{};
  std::array<std::int64_t, kModes> max_room{};    // on a shared device; 0: there is none
  std::array<std::int64_t, kModes> room_milli{};  // on all shared devices, in thousandths of one
};

struct NodeState {
  BankId first_bank = 0;
  std::uint32_t bank_count = 0;
  std::uint32_t first_device = 0;
  std::uint32_t device_count = 0;
  bool up = true;
  bool cordoned = false;
  bool draining = false;
  HostVec capacity{};
  std::array<HostVec, kModes> used{};
  std::array<std::int32_t, kModes> workers{};
  std::int32_t max_workers = 0;
  std::uint32_t layout = 0;

  bool Usable() const { return up && !cordoned && !draining; }
};

// Which banks changed, in order; positions are absolute and only the last ones are kept.
class BankLog {
 public:
  void Note(BankId bank);
  std::uint64_t end() const { return start_ + banks_.size(); }
  std::uint64_t start() const { return start_; }
  BankId at(std::uint64_t position) const { return banks_[position - start_]; }
  // Whether the bank changed again behind this position, so that a reader can wait for that entry.
  bool superseded(std::uint64_t position) const { return last_[at(position)] != position; }
  // Other after every change of the bank; 0: there was none.
  std::uint64_t version(BankId bank) const { return bank < last_.size() ? last_[bank] + 1 : 0; }

 private:
  std::vector<BankId> banks_;
  static constexpr std::uint64_t kNever = ~0ULL;
  std::vector<std::uint64_t> last_;  // by bank
  std::uint64_t start_ = 0;
};

class NodeTable {
 public:
  // `host_names` are the countables beside cores and memory that workers may ask for.
  explicit NodeTable(std::vector<std::string> host_names = {});

  NodeId Add(const model::Node& node);
  void SetUp(NodeId node, bool up);
  void SetCordoned(NodeId node, bool cordoned, bool draining);

  // Adds (or with sign -1 removes) a worker's take in the given modes.
  void Occupy(BankId bank, const Take& take, ModeSet modes, int sign);

  std::size_t size() const { return nodes_.size(); }
  std::size_t bank_count() const { return banks_.size(); }
  const NodeState& node(NodeId id) const { return nodes_[id]; }
  const Bank& bank(BankId id) const { return banks_[id]; }
  const NodeState& node_of(BankId id) const { return nodes_[banks_[id].node]; }
  const Device& device(NodeId id, std::uint32_t index) const {
    return devices_[nodes_[id].first_device + index];
  }
  const model::Node& spec(NodeId id) const { return specs_[id]; }
  const DeviceLayout& layout(NodeId id) const { return layouts_[nodes_[id].layout]; }
  BankId BankOfDevices(NodeId id, std::uint64_t devices) const;

  std::int64_t Room(BankId id, std::uint32_t device_index, Mode mode) const;
  std::int64_t HostFree(NodeId id, std::size_t dim, Mode mode) const {
    const auto& state = nodes_[id];
    return state.capacity[dim] - state.used[static_cast<std::size_t>(mode)][dim];
  }
  bool HostFits(NodeId id, const HostVec& need, Mode mode) const;

  // GPU types by name; unnamed GPUs have the empty type.
  std::size_t type_count() const { return type_names_.size(); }
  const std::string& type_name(TypeId type) const { return type_names_[type]; }
  TypeId FindType(const std::string& name) const;  // kNone if no node has it
  std::size_t host_dims() const { return kFirstHostOther + host_names_.size(); }
  const std::vector<std::string>& host_names() const { return host_names_; }
  std::int64_t smallest_device_memory() const { return smallest_memory_; }

  // Sums over usable nodes.
  std::int64_t usable_gpus(TypeId type) const { return usable_gpus_[type]; }
  std::int64_t usable_gpus() const;
  const HostVec& usable_host() const { return usable_host_; }
  // Unoccupied GPUs and the rooms on shared ones, in thousandths.
  std::int64_t FreeMilli(TypeId type, Mode mode) const {
    return free_milli_[static_cast<std::size_t>(mode)][type];
  }

  // Banks of `type` with exactly `count` unoccupied GPUs, in order of id.
  const Bits& WithUnoccupied(TypeId type, std::uint32_t count, Mode mode) const {
    return by_unoccupied_[static_cast<std::size_t>(mode)][type][count];
  }
  static constexpr std::uint32_t kRoomClasses = 16;
  // Banks of `type` whose largest shared room is in sixteenth `room_class` (1..16) of a device.
  const Bits& WithRoom(TypeId type, std::uint32_t room_class, Mode mode) const {
    return by_room_[static_cast<std::size_t>(mode)][type][room_class];
  }
  static std::uint32_t RoomClass(std::int64_t room, std::int64_t memory);
  std::uint32_t max_devices() const { return max_devices_; }
  // Nodes by free cores, fullest first; without GPUs apart from those with.
  using ByCores = std::set<std::pair<std::int64_t, BankId>>;
  const ByCores& FullestByCores(bool with_gpus, Mode mode) const {
    return by_cores_[static_cast<std::size_t>(mode)][with_gpus ? 1 : 0];
  }
  void KeepCoreIndex();  // from now on; costs a tree update per change

  // The banks whose occupancy in this mode changed.
  const BankLog& log(Mode mode) const { return logs_[static_cast<std::size_t>(mode)]; }

 private:
  TypeId InternType(const std::string& name);
  void AddBank(NodeId id, TypeId type, std::int64_t memory, std::uint64_t mask);
  void GrowIndexes();
  void Index(BankId id, bool insert);
  void IndexNode(NodeId id, bool insert);
  void Count(NodeId id, int sign);
  void NoteNode(const NodeState& node, ModeSet modes);
  void MeasureRooms(BankId id, std::size_t mode);

  std::vector<std::string> host_names_;
  std::vector<NodeState> nodes_;
  std::vector<Bank> banks_;
  std::vector<Device> devices_;
  std::vector<model::Node> specs_;
  std::vector<DeviceLayout> layouts_;
  std::vector<std::string> type_names_;
  std::int64_t smallest_memory_ = 0;
  std::uint32_t max_devices_ = 0;
  bool keep_cores_ = false;

  template <typename T>
  using PerMode = std::array<T, kIndexedModes>;
  PerMode<std::vector<std::vector<Bits>>> by_unoccupied_;
  PerMode<std::vector<std::vector<Bits>>> by_room_;
  PerMode<std::array<ByCores, 2>> by_cores_;
  std::array<std::vector<std::int64_t>, kModes> free_milli_;
  std::vector<std::int64_t> usable_gpus_;
  HostVec usable_host_{};
  std::array<BankLog, kModes> logs_;
};

}  // namespace muster::engine

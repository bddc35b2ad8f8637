// ShapeTable: worker requests that are equal are one shape, and share what is known about them.
//
// A shape merges what the role asks for with where its queue, its kind and its job may run. For
// each shape and mode the table keeps how many such workers each bank, each domain and the whole
// cluster could take: an upper bound that is exact for whole GPUs. The counts are lazy: a query
// first catches up with the node table's log, so that a shape nobody asks about costs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ids.h"
#include "engine/nodes.h"
#include "engine/topology.h"
#include "engine/vec.h"
#include "model/queue.h"
#include "model/resources.h"

namespace muster::engine {

struct ShapeSpec {
  model::WorkerRequest request;
  std::vector<std::string> gpu_types;  // ordered; empty: any
  model::Labels labels;
  std::optional<std::vector<std::string>> node_names;
  bool same_device = false;
  bool nowhere = false;  // the confinements contradict each other
  friend auto operator<=>(const ShapeSpec&, const ShapeSpec&) = default;
  friend bool operator==(const ShapeSpec&, const ShapeSpec&) = default;
};

// Why a bank cannot take a worker, in the order in which it is tested.
enum class Filter : std::uint8_t {
  kFits,
  kDown,
  kCordoned,   // or draining: takes no new worker
  kConfined,   // queue, kind, labels or node names exclude it
  kGpuType,    // other GPU type, or no GPU
  kGpuMemory,  // the whole device is too small
  kGpus,       // not enough unoccupied GPUs or room on shared ones
  kCores,
  kMemory,
  kCountable,
  kWorkers,  // as many workers as the node takes
};
inline constexpr std::size_t kFilters = 11;

struct Shape {
  ShapeSpec spec;
  HostVec host{};
  std::vector<std::uint32_t> type_rank;  // by TypeId: place in the preference, kNone: not allowed
  Vec cost;     // while pending: GPUs against the smallest device; a type only where it is certain
  Vec request;  // the same, counted for every GPU type that it might take
  std::vector<bool> allowed;  // by bank: confinement and type
  bool anywhere = true;       // no confinement and any type
};

class ShapeTable {
 public:
  ShapeTable(const NodeTable& nodes, const TopologyTable& topology)
      : nodes_(nodes), topology_(topology) {}

  ShapeId Intern(ShapeSpec spec, std::size_t dims, const std::vector<std::size_t>& type_dims,
                 std::size_t first_countable_dim);
  void NodeAdded(NodeId id);  // widens what is known of every shape
  void RefreshCosts(std::size_t dims, const std::vector<std::size_t>& type_dims,
                    std::size_t first_countable_dim);

  const Shape& operator[](ShapeId id) const { return shapes_[id]; }
  std::size_t size() const { return shapes_.size(); }

  // Bytes that a worker takes of each of its devices on this bank; whole GPUs take all.
  std::int64_t UnitsOn(const Shape& shape, const Bank& bank) const;
  // What the queue is charged for it there, in thousandths of a GPU.
  std::int64_t ChargeOn(const Shape& shape, const Bank& bank) const;

  // Workers of known jobs that ask for the shape, whether they run or wait.
  void AddDemand(ShapeId shape, std::int64_t workers);
  std::int64_t demand(ShapeId shape) const { return demand_[shape]; }
  // The shapes with GPUs that stand for what is to come, with how much each of them counts: not a
  // number of workers but its power of four, and nothing below a 256th of all. So they are the same
  // for the same demand, and still change rarely. At most kMostTargets.
  struct Target {
    ShapeId shape = kNone;
    std::int64_t weight = 0;
  };
  static constexpr std::size_t kMostTargets = 64;
  const std::vector<Target>& Targets();
  // Grows whenever Targets() may have changed.
  std::uint64_t demand_version() const { return demand_version_; }

  Filter Test(const Shape& shape, BankId bank, Mode mode) const;
  // How many workers of one gang the bank could take, each device once unless they may share it.
  std::uint32_t SlotsOn(const Shape& shape, BankId bank, Mode mode) const;
  // The same as if the node were up and took new workers.
  std::uint32_t SlotsInService(const Shape& shape, BankId bank, Mode mode) const;

  std::int64_t Slots(ShapeId shape, Mode mode);
  // SlotsOn() of every bank.
  const std::vector<std::uint32_t>& SlotsByBank(ShapeId shape, Mode mode);
  std::int64_t SlotsIn(ShapeId shape, LevelId level, DomainId domain, Mode mode);

 private:
  struct Counts {
    std::vector<std::uint32_t> slots;  // by bank
    std::int64_t total = 0;
    std::uint64_t seen = 0;                                  // log position
    std::map<LevelId, std::vector<std::int64_t>> by_domain;  // of the levels that were asked about
  };

  void Allow(Shape& shape, BankId bank);
  void FillCosts(Shape& shape, std::size_t dims, const std::vector<std::size_t>& type_dims,
                 std::size_t first_countable_dim);
  Counts& CatchUp(ShapeId shape, Mode mode);
  void Rebuild(const Shape& shape, Mode mode, Counts& counts);
  std::uint32_t GpuSlots(const Shape& shape, const Bank& bank, BankId id, Mode mode) const;

  const NodeTable& nodes_;
  const TopologyTable& topology_;
  std::map<ShapeSpec, ShapeId> by_spec_;
  std::vector<Shape> shapes_;
  std::vector<std::array<Counts, kModes>> counts_;
  std::vector<std::int64_t> demand_;
  std::int64_t gpu_demand_ = 0;  // of all shapes with GPUs
  std::uint64_t demand_version_ = 0;
  std::vector<Target> targets_;
  std::uint64_t targets_version_ = 0;  // of the demand that they were made from
};

}  // namespace muster::engine

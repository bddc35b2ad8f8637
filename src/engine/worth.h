// Worth: how much GPU of a bank the workers that are known can still use.
//
// For each shape that is asked for it is the least of three: what its GPUs will probably give away,
// and what its cores and its memory (and whatever else is counted) are enough for at the rate at
// which the shape uses them; nothing where the shape cannot run. A bank is worth the mean, by how
// many workers ask for the shapes. A worker goes where worth falls least: so one that asks for many
// cores goes where cores are plenty, and one without GPUs to where no idle GPU needs the cores.
// Integers only, and the same for the same demand, however that came about. A look costs a pass
// over the GPUs of the bank and over the shapes that count.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/nodes.h"
#include "engine/shapes.h"

namespace muster::engine {

// What GPUs with this much room will probably never give away.
//
// Offered so many more shares, by how many workers ask for each, a GPU takes those that make its
// waste smaller: W(0, r) is r, and W(k, r) the mean over shares s of the smaller of W(k-1, r) and
// W(k-1, r - s). A whole GPU wastes nothing where whole ones are asked for.
class WasteTable {
 public:
  static constexpr std::int64_t kPart = 1024;  // of a thousandth of a GPU: the unit of waste
  struct Share {
    std::int64_t milli = 0;  // of one GPU, less than all of it
    std::int64_t weight = 0;
  };

  explicit WasteTable(std::int64_t offers) : offers_(offers) { Learn({}, false); }
  void Learn(std::span<const Share> shares, bool whole);
  std::int64_t At(std::int64_t room_milli) const {
    return waste_[static_cast<std::size_t>(room_milli)];
  }
  // By how much waste grows if so much of a GPU with this room is taken.
  std::int64_t Growth(std::int64_t room_milli, std::int64_t taken_milli) const {
    return At(room_milli - taken_milli) - At(room_milli);
  }

 private:
  std::int64_t offers_;
  std::array<std::int64_t, kMilli + 1> waste_{};
};

struct WorthRules {
  bool by_waste = true;          // else shares go to the tightest GPU
  std::int64_t offers = 15;      // that a rest of a GPU waits for
  std::int64_t step_milli = 10;  // smaller differences say nothing
};

class Worth {
 public:
  Worth(const NodeTable& nodes, ShapeTable& shapes, const WorthRules& rules)
      : nodes_(nodes), shapes_(shapes), rules_(rules), waste_(rules.offers) {}

  // Follows what is asked for. False: nothing has changed, what was said before still holds.
  bool Learn();
  const WasteTable& waste() const { return waste_; }

  // By how much the bank's node is worth less, in steps, once a worker of the shape is on the bank,
  // where it fits.
  std::int64_t Fall(const Shape& shape, BankId bank, Mode mode);
  // The GPUs of `usable` for a share: those where waste grows least, then with the least room. 0:
  // there are not enough with room for it.
  std::uint64_t ChooseDevices(const Shape& shape, BankId bank, Mode mode,
                              std::uint64_t usable) const;

 private:
  // A shape that counts, as the banks of one GPU type see it.
  struct Target {
    ShapeId shape = kNone;
    bool confined = false;  // to some nodes
    int devices = 0;
    std::int64_t weight = 0;
    std::int64_t milli = 0;  // of each of its GPUs; 0: that depends on the GPU's memory
    HostVec gpu_per{};       // waste units for each unit of what is counted beside GPUs, shifted
  };
  // What a worker takes of the GPUs of a bank.
  struct Taken {
    std::uint64_t devices = 0;
    std::int64_t milli = 0;  // of each
  };
  struct Spare {
    int idle = 0;               // GPUs
    std::int64_t largest = 0;   // room, in thousandths
    std::int64_t fillable = 0;  // in units of waste
  };

  Target TargetOf(const ShapeTable::Target& target) const;
  Taken TakenBy(const Shape& shape, BankId bank, Mode mode) const;
  Spare SpareOf(BankId bank, Mode mode, const Taken& taken) const;
  std::int64_t ValueOf(NodeId node, Mode mode);
  HostVec FreeOf(NodeId node, Mode mode, const HostVec& taken) const;
  std::int64_t Value(BankId bank, Mode mode, const Taken& taken, const HostVec& free) const;
  std::int64_t RoomMilli(BankId bank, std::uint32_t device, Mode mode, const Taken& taken) const;
  int CountWithRoom(BankId bank, Mode mode, const Taken& taken, std::int64_t milli) const;

  const NodeTable& nodes_;
  ShapeTable& shapes_;
  WorthRules rules_;
  WasteTable waste_;
  std::vector<std::vector<Target>> targets_;  // by GPU type
  std::int64_t weight_ = 0;                   // of all shapes that count
  std::uint64_t learnt_ = ~0ULL;              // the demand, by its version
  // What nodes are worth as they are, kept until they change.
  struct Known {
    std::int64_t value = -1;
    std::uint64_t version = 0;
  };
  std::array<std::vector<Known>, kIndexedModes> known_;  // by node
};

}  // namespace muster::engine

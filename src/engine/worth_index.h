// WorthIndex: of the banks with room for a worker, the one that loses the least by it.
//
// For each shape that was asked about it keeps what the banks lose, in a tree whose root is the
// least: equals in the order of the banks. Room is what is free now. A query first catches up with
// the node table's log, so it costs a look at each bank that changed since the last one of its
// shape; all are looked at again where the demand has changed (see ShapeTable::Targets) or a node
// is new. What is kept is bounded: the shapes that were not asked about for longest are forgotten.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/devices.h"
#include "engine/nodes.h"
#include "engine/shapes.h"
#include "engine/worth.h"

namespace muster::engine {

class WorthIndex {
 public:
  // `devices` are the rules of single workers.
  WorthIndex(const NodeTable& nodes, ShapeTable& shapes, const WorthRules& rules,
             const DeviceRules& devices)
      : nodes_(nodes),
        shapes_(shapes),
        rules_(devices),
        by_links_(devices.links && devices.spare_islands),
        worth_(nodes, shapes, rules) {}

  // Of the types that the shape prefers the bank where worth falls least; of equals the fullest,
  // then the one whose links are broken most; with a bank for which `fits` says no the next one, up
  // to kLooks. kNone: there is none.
  BankId Pick(ShapeId shape, const std::function<bool(BankId)>& fits);
  // As it is now.
  Worth& worth() {
    if (worth_.Learn()) ++generation_;
    return worth_;
  }
  static constexpr std::size_t kMostKept = 1024;
  std::size_t kept() const { return trees_.size(); }  // shapes

 private:
  static constexpr std::size_t kLooks = 16;
  static constexpr std::size_t kMostLeaves = 1U << 21;  // of all trees together
  static constexpr std::uint64_t kNoRoom = ~0ULL;

  struct Tree {
    std::vector<std::uint64_t> keys;  // 1 is the root, 2i and 2i + 1 are below i
    std::size_t leaves = 0;
    std::size_t banks = 0;
    std::uint64_t learnt = 0;  // generation_ when it was made
    std::uint64_t seen = 0;    // position in the log
    std::uint64_t asked = 0;   // the query that asked last
    void Set(BankId bank, std::uint64_t key);
    BankId First() const;
  };

  Tree& CatchUp(ShapeId shape);
  void Rebuild(ShapeId shape, Tree& tree);
  void Forget(const Tree& newest);
  std::uint64_t KeyOf(const Shape& shape, BankId bank);  // which has room for it

  const NodeTable& nodes_;
  ShapeTable& shapes_;
  DeviceRules rules_;
  bool by_links_;
  Worth worth_;
  std::uint64_t generation_ = 0;  // of what worth_ has learnt
  std::uint64_t queries_ = 0;
  std::map<ShapeId, Tree> trees_;
};

}  // namespace muster::engine

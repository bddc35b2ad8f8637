// ShardProgram: in which order a worker computes its shards, and what it adds up in between.
//
// Shards are computed one after the other, each into a buffer of its own, and summed as soon as the
// tree allows it, so that few buffers are needed: one for each subtree of the run and one for each
// level of the subtree at hand. In fast mode a worker sums its run from left to right in two, and
// may do so over several batches: the run of the first, then that of the next into the same sum.
#pragma once

#include <vector>

#include "train/exact/shard_tree.h"

namespace muster::train {

struct ShardProgram {
  struct Add {
    int into = 0, from = 0;  // buffers
    friend bool operator==(const Add&, const Add&) = default;
  };
  struct Compute {
    int shard = 0;
    int buffer = 0;
    std::vector<Add> adds;  // afterwards, in this order
    int node = -1;          // the one of `nodes` that is complete then
    int batch = 0;          // of those that the step takes
    friend bool operator==(const Compute&, const Compute&) = default;
  };
  struct Node {
    ShardRange range;
    int buffer = 0;
    friend bool operator==(const Node&, const Node&) = default;
  };

  std::vector<Compute> computes;
  std::vector<Node> nodes;  // what goes to the others, from left to right
  int buffers = 0;
};

ShardProgram ProgramFor(ShardRange run, int shards, bool exact);
// In fast mode, over so many batches; the nodes are those of one.
ShardProgram ProgramOver(ShardRange run, int batches);

}  // namespace muster::train

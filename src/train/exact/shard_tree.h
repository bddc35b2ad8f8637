// ShardTree: the order in which the gradients of the shards are summed, whoever holds them.
//
// The shards of a step are the leaves of a binary tree that halves their range again and again; a
// sum is always (left) + (right). A worker that has a run of shards sums what it can by itself: the
// largest subtrees inside the run, at most two on each level. The rest of the tree joins those of
// all workers. So the bits of the total depend on the number of shards alone.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::train {

// Shards [first, last); a node of the tree.
struct ShardRange {
  int first = 0;
  int last = 0;
  int size() const { return last - first; }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
  friend auto operator<=>(const ShardRange&, const ShardRange&) = default;
};

// Where a node is cut in two; it has at least two shards.
int SplitOf(ShardRange node);

// The largest nodes of the tree over `shards` shards that lie inside the run, from left to right.
std::vector<ShardRange> CoverOf(ShardRange run, int shards);

// One addition: the sum of the left and the right child becomes that of the node.
struct ShardSum {
  ShardRange node, left, right;
  friend bool operator==(const ShardSum&, const ShardSum&) = default;
};

// The additions that can be made with some nodes, children first, and what there is afterwards,
// from left to right: one node where they cover the tree.
struct ShardSums {
  std::vector<ShardSum> sums;
  std::vector<ShardRange> left;
};
// `nodes`: none inside another, from left to right.
ShardSums SumsOver(const std::vector<ShardRange>& nodes, int shards);

// Runs of about equal length for so many workers; the first ones are longer. Some are empty where
// there are more workers than shards.
std::vector<ShardRange> RunsFor(int workers, int shards);

}  // namespace muster::train

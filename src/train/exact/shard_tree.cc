#include "train/exact/shard_tree.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace muster::train {

namespace {

void Cover(ShardRange node, ShardRange run, std::vector<ShardRange>& out) {
  if (node.last <= run.first || run.last <= node.first) return;
  if (run.first <= node.first && node.last <= run.last) {
    out.push_back(node);
    return;
  }
  const int split = SplitOf(node);
  Cover({node.first, split}, run, out);
  Cover({split, node.last}, run, out);
}

// Whether there is a sum of the node in the end.
bool Sum(ShardRange node, const std::vector<ShardRange>& nodes, ShardSums& out) {
  if (std::ranges::binary_search(nodes, node)) return true;
  if (node.size() == 1) return false;
  const int split = SplitOf(node);
  const ShardRange left{node.first, split}, right{split, node.last};
  const bool has_left = Sum(left, nodes, out);
  if (has_left) out.left.push_back(left);
  const std::size_t before = out.left.size();
  const bool has_right = Sum(right, nodes, out);
  if (has_left && has_right) {
    out.left.resize(before - 1);
    out.sums.push_back({node, left, right});
    return true;
  }
  if (has_right) out.left.push_back(right);
  return false;
}

}  // namespace

// The left part is the largest power of two below the size: adding shards at the end leaves the
// nodes before them as they were.
int SplitOf(ShardRange node) {
  MUSTER_CHECK(node.size() > 1, "a node that is cut has two shards");
  return node.first + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.size() - 1)));
}

std::vector<ShardRange> CoverOf(ShardRange run, int shards) {
  std::vector<ShardRange> out;
  if (run.size() > 0) Cover({0, shards}, run, out);
  return out;
}

ShardSums SumsOver(const std::vector<ShardRange>& nodes, int shards) {
  ShardSums out;
  if (Sum({0, shards}, nodes, out)) out.left.push_back({0, shards});
  return out;
}

std::vector<ShardRange> RunsFor(int workers, int shards) {
  std::vector<ShardRange> out;
  out.reserve(static_cast<std::size_t>(workers));
  int first = 0;
  for (int worker = 0; worker < workers; ++worker) {
    const int length = shards / workers + (worker < shards % workers ? 1 : 0);
    out.push_back({first, first + length});
    first += length;
  }
  return out;
}

}  // namespace muster::train

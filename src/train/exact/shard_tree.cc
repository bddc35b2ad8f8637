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

void Sum(ShardRange node, const std::vector<ShardRange>& cover, std::vector<ShardSum>& out) {
  if (std::ranges::binary_search(cover, node)) return;
  MUSTER_CHECK(node.size() > 1, "a node that is cut has two shards");
  const int split = SplitOf(node);
  const ShardRange left{node.first, split}, right{split, node.last};
  Sum(left, cover, out);
  Sum(right, cover, out);
  out.push_back({node, left, right});
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

std::vector<ShardSum> SumsOver(const std::vector<ShardRange>& cover, int shards) {
  std::vector<ShardSum> out;
  Sum({0, shards}, cover, out);
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

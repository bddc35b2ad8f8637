#include "train/exact/shard_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;

TEST(ShardTreeTest, ARunIsCoveredByItsLargestSubtrees) {
  EXPECT_THAT(CoverOf({0, 8}, 8), ElementsAre(ShardRange{0, 8}));
  EXPECT_THAT(CoverOf({0, 4}, 8), ElementsAre(ShardRange{0, 4}));
  EXPECT_THAT(CoverOf({3, 6}, 8), ElementsAre(ShardRange{3, 4}, ShardRange{4, 6}));
  EXPECT_THAT(CoverOf({1, 7}, 8),
              ElementsAre(ShardRange{1, 2}, ShardRange{2, 4}, ShardRange{4, 6}, ShardRange{6, 7}));
  EXPECT_THAT(CoverOf({4, 4}, 8), ElementsAre());
}

TEST(ShardTreeTest, TheLeftPartOfANodeIsAPowerOfTwo) {
  EXPECT_EQ(SplitOf({0, 8}), 4);
  EXPECT_EQ(SplitOf({0, 6}), 4);
  EXPECT_EQ(SplitOf({4, 7}), 6);
  EXPECT_EQ(SplitOf({2, 4}), 3);
}

// Floats, whose sums depend on the order: any runs give the bits that one worker gives.
TEST(ShardTreeTest, TheSumDoesNotDependOnWhoHoldsWhichShards) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const int shards = static_cast<int>(random.Between(1, 24));
    std::vector<float> values;
    for (int i = 0; i < shards; ++i) {
      values.push_back(static_cast<float>(random.Between(-1'000'000, 1'000'000)) * 1e-3F);
    }
    const auto total = [&](int workers) {
      std::map<ShardRange, float> sums;
      for (const auto& run : RunsFor(workers, shards)) {
        for (const auto& node : CoverOf(run, shards)) {
          std::vector<ShardRange> leaves;
          for (int i = node.first; i < node.last; ++i) leaves.push_back({i, i + 1});
          std::map<ShardRange, float> inside;
          for (const auto& leaf : leaves) {
            inside[leaf] = values[static_cast<std::size_t>(leaf.first)];
          }
          for (int i = 0; i < shards; ++i) {
            if (i < node.first || i >= node.last) leaves.push_back({i, i + 1});
          }
          std::ranges::sort(leaves);
          for (const auto& sum : SumsOver(leaves, shards).sums) {
            if (inside.contains(sum.left) && inside.contains(sum.right)) {
              inside[sum.node] = inside[sum.left] + inside[sum.right];
            }
          }
          sums[node] = inside.at(node);
        }
      }
      std::vector<ShardRange> cover;
      for (const auto& [node, sum] : sums) cover.push_back(node);
      for (const auto& sum : SumsOver(cover, shards).sums)
        sums[sum.node] = sums[sum.left] + sums[sum.right];
      return sums.at({0, shards});
    };
    const float alone = total(1);
    for (int workers = 2; workers <= 9; ++workers) {
      EXPECT_EQ(total(workers), alone) << shards << " shards, " << workers << " workers";
    }
  }
}

TEST(ShardTreeTest, WhatCannotBeSummedIsLeft) {
  const auto some = SumsOver({{0, 1}, {1, 2}, {3, 4}, {4, 6}, {6, 8}}, 8);
  EXPECT_THAT(some.sums,
              ElementsAre(ShardSum{{0, 2}, {0, 1}, {1, 2}}, ShardSum{{4, 8}, {4, 6}, {6, 8}}));
  EXPECT_THAT(some.left, ElementsAre(ShardRange{0, 2}, ShardRange{3, 4}, ShardRange{4, 8}));
  EXPECT_THAT(SumsOver({{0, 4}, {4, 8}}, 8).left, ElementsAre(ShardRange{0, 8}));
  EXPECT_THAT(SumsOver({}, 8).left, ElementsAre());
}

TEST(ShardTreeTest, RunsCoverAllShardsAndDifferByOneAtMost) {
  EXPECT_THAT(RunsFor(3, 8), ElementsAre(ShardRange{0, 3}, ShardRange{3, 6}, ShardRange{6, 8}));
  EXPECT_THAT(RunsFor(3, 2), ElementsAre(ShardRange{0, 1}, ShardRange{1, 2}, ShardRange{2, 2}));
}

}  // namespace
}  // namespace muster::train

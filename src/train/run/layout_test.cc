#include "train/run/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Layout LayoutOf(const std::string& text, int members, const std::vector<int>& servers = {},
                int mirrors = 1) {
  View view;
  for (int rank = 0; rank < members; ++rank) {
    view.members.push_back({static_cast<MemberId>(rank) + 1, "", "", "", 0});
  }
  for (const int rank : servers) view.servers.push_back(static_cast<MemberId>(rank) + 1);
  const auto strategy = ParseStrategy(text, 8);
  EXPECT_TRUE(strategy) << text;
  return LayoutFor(*strategy, view, mirrors);
}

TEST(StrategyTest, IsAShapeOfTheGridOrAChoiceOfOwners) {
  const auto hybrid = ParseStrategy("hybrid:data=2,stages=3,slices=4,micro=5", 8);
  ASSERT_TRUE(hybrid);
  EXPECT_EQ(hybrid->grid.shards(), 10);
  EXPECT_EQ(hybrid->grid.columns(), 12);
  EXPECT_EQ(hybrid->grid.cells(), 24);
  EXPECT_EQ(ParseStrategy("data", 6)->grid.cells(), 6);
  EXPECT_EQ(ParseStrategy("pipeline:stages=2", 6)->grid.cells(), 2);
  EXPECT_EQ(ParseStrategy("pipeline:stages=2", 6)->grid.shards(), 6);
  EXPECT_EQ(ParseStrategy("tensor:slices=2,micro=3", 6)->grid.shards(), 3);
  EXPECT_EQ(ParseStrategy("mirrored:lanes=3", 6)->lanes, 3);
  EXPECT_EQ(ParseStrategy("server:servers=2", 6)->servers, 2);
  EXPECT_EQ(ParseStrategy("central", 6)->servers, 1);
  EXPECT_EQ(ParseStrategy("server:servers=2", 6)->mode, Mode::kSynchronous);
  EXPECT_EQ(ParseStrategy("server:mode=async,round=3", 6)->mode, Mode::kAsynchronous);
  EXPECT_EQ(ParseStrategy("server:mode=async,round=3", 6)->round, 3);
  EXPECT_EQ(ParseStrategy("server:mode=bounded,staleness=2", 6)->mode, Mode::kBounded);
  EXPECT_EQ(ParseStrategy("server:mode=bounded,staleness=2", 6)->staleness, 2);
}

TEST(StrategyTest, AMistakeIsNamed) {
  for (const char* text :
       {"", "ring", "data:stages=2", "pipeline:stages=0", "central:servers=2",
        "pipeline:stages=2,micro=5000", "hybrid:stages=100,slices=100", "server:mode=free",
        "data:mode=async", "server:mode=bounded", "server:mode=async,staleness=1",
        "server:staleness=1", "server:round=3", "server:mode=async,round=4"}) {
    const auto strategy = ParseStrategy(text, 8);
    ASSERT_FALSE(strategy) << text;
    EXPECT_FALSE(strategy.error().hint.empty()) << text;
  }
}

TEST(LayoutTest, DataParallelIsOneColumnThatAllCompute) {
  const auto layout = LayoutOf("data", 3);
  EXPECT_THAT(layout.At(0).computers, ElementsAre(0, 1, 2));
  EXPECT_THAT(layout.At(0).runs, ElementsAre(ShardRange{0, 3}, ShardRange{3, 6}, ShardRange{6, 8}));
  EXPECT_THAT(layout.At(0).owners, ElementsAre(0, 1, 2));
  EXPECT_THAT(layout.PartsAt(0, 0), ElementsAre(0, 2));
  EXPECT_EQ(layout.At(0).ComputerOf(5), 1);
}

TEST(LayoutTest, EveryCellIsComputedByOneWorkerOfAnyNumber) {
  for (int members = 1; members <= 14; ++members) {
    const auto layout = LayoutOf("hybrid:data=2,stages=3,slices=2,micro=2", members);
    std::vector<int> cells(static_cast<std::size_t>(members));
    for (const auto& column : layout.columns) {
      int shard = 0;
      for (std::size_t i = 0; i < column.runs.size(); ++i) {
        EXPECT_EQ(column.runs[i].first, shard);
        shard = column.runs[i].last;
        cells[static_cast<std::size_t>(column.computers[i])] += column.runs[i].size() / 2;
      }
      EXPECT_EQ(shard, 4);
    }
    EXPECT_LE(*std::ranges::max_element(cells) - *std::ranges::min_element(cells), 1);
  }
}

TEST(LayoutTest, AStageWithOneWorkerIsMirroredByTheNextOne) {
  const auto layout = LayoutOf("pipeline:stages=3", 3);
  EXPECT_THAT(layout.At(1).computers, ElementsAre(1));
  EXPECT_THAT(layout.PartsAt(1, 1), ElementsAre(0));
  EXPECT_THAT(layout.PartsAt(1, 2), ElementsAre(0));
  EXPECT_THAT(layout.PartsAt(1, 0), IsEmpty());
}

TEST(LayoutTest, ServersOwnAndComputeNothing) {
  const auto layout = LayoutOf("server:servers=2", 5, {1, 3});
  EXPECT_THAT(layout.At(0).computers, ElementsAre(0, 2, 4));
  EXPECT_THAT(layout.At(0).owners, ElementsAre(1, 3));
  EXPECT_THAT(LayoutOf("central", 5, {1, 3}).At(0).owners, ElementsAre(1));
}

TEST(LayoutTest, WhoIsLeftDoesTheWorkOfThoseWhoAreNotThere) {
  EXPECT_THAT(LayoutOf("server:servers=2", 2).At(0).owners, ElementsAre(0, 1));
  EXPECT_THAT(LayoutOf("server:servers=2", 2, {0, 1}).At(0).computers, ElementsAre(0, 1));
}

TEST(LayoutTest, LanesShareTheRunOfAWorker) {
  EXPECT_THAT(LaneRuns({2, 7}, 2), ElementsAre(ShardRange{2, 5}, ShardRange{5, 7}));
  EXPECT_THAT(LaneRuns({2, 3}, 4), ElementsAre(ShardRange{2, 3}));
}

}  // namespace
}  // namespace muster::train

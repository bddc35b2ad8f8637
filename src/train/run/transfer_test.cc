#include "train/run/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace muster::train {
namespace {

const std::vector<Buckets> kOneColumn{{{1000, 1600}, {40, 1000}, {0, 40}}};
const std::vector<Buckets> kFourColumns{
    {{1000, 1600}, {40, 1000}, {0, 40}}, {{0, 70}}, {}, {{300, 400}, {0, 300}}};

Strategy StrategyOf(const char* text) {
  auto strategy = ParseStrategy(text, 8);
  EXPECT_TRUE(strategy) << text;
  return *strategy;
}

View ViewOf(const std::vector<MemberId>& members, std::int64_t step) {
  View view;
  view.step = step;
  for (const auto id : members) {
    view.members.push_back({id, "host", "", "", 0});
    if (id % 5 == 0) view.servers.push_back(id);
  }
  return view;
}

// What the members of a view hold when it is installed and one more step is done.
Holdings HeldBy(const std::vector<MemberId>& members, std::int64_t step, const Strategy& strategy,
                int mirrors) {
  Holdings out;
  const auto layout = LayoutFor(strategy, ViewOf(members, step), mirrors);
  for (int rank = 0; rank < layout.members; ++rank) {
    auto& held = out[members[static_cast<std::size_t>(rank)]];
    for (const auto at : {step - 1, step}) {
      const auto needed = NeededBy(rank, layout, at);
      held.insert(held.end(), needed.begin(), needed.end());
    }
  }
  return out;
}

// Everything that each member needs comes once, from somebody who has it.
void ExpectComplete(const View& view, const Layout& layout, const Holdings& holdings,
                    const std::vector<Move>& plan, std::span<const Buckets> columns) {
  for (int to = 0; to < layout.members; ++to) {
    for (const auto& target : NeededBy(to, layout, view.step)) {
      const auto& buckets = columns[static_cast<std::size_t>(target.column)];
      for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
        const auto wanted = PartOf(buckets[bucket], target.parts, target.part);
        std::size_t at = wanted.first;
        for (const auto& move : plan) {
          if (move.to != to || move.target != target || move.bucket != bucket) continue;
          EXPECT_EQ(move.extent.first, at);
          EXPECT_EQ(move.source.column, target.column);
          at = move.extent.last;
          const auto source = PartOf(buckets[bucket], move.source.parts, move.source.part);
          EXPECT_LE(source.first, move.extent.first);
          EXPECT_GE(source.last, move.extent.last);
          const auto& from = view.members[static_cast<std::size_t>(move.from)];
          EXPECT_THAT(holdings.at(from.id), testing::Contains(move.source));
        }
        EXPECT_EQ(at, wanted.last);
      }
    }
  }
}

// Any one may die, and others may come.
void ChangeTheGang(const char* text, std::span<const Buckets> columns) {
  const auto strategy = StrategyOf(text);
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    const int mirrors = static_cast<int>(random.Between(1, 2));
    std::vector<MemberId> before, after;
    const auto count = static_cast<MemberId>(random.Between(1, 10));
    for (MemberId id = 1; id <= count; ++id) before.push_back(id);
    const auto holdings = HeldBy(before, 9, strategy, mirrors);
    const auto lost =
        static_cast<MemberId>(random.Between(1, static_cast<std::int64_t>(count) + 1));
    for (const MemberId id : before) {
      if (id != lost || count == 1) after.push_back(id);
    }
    for (int more = 0; more < random.Between(0, 3); ++more) {
      after.push_back(100U + static_cast<MemberId>(more));
    }
    for (const std::int64_t step : {8, 9}) {
      const auto view = ViewOf(after, step);
      const auto layout = LayoutFor(strategy, view, mirrors);
      const auto plan = PlanTransfer(view, layout, holdings, columns);
      ASSERT_TRUE(plan) << text << ": " << count << " without " << lost;
      ExpectComplete(view, layout, holdings, *plan, columns);
    }
  }
}

TEST(TransferTest, AnyGangBecomesAnyOtherOfItsSurvivorsAndNewcomers) {
  ChangeTheGang("data", kOneColumn);
  ChangeTheGang("server:servers=2", kOneColumn);
  ChangeTheGang("central", kOneColumn);
  ChangeTheGang("hybrid:data=2,stages=2,slices=2", kFourColumns);
  ChangeTheGang("pipeline:stages=4", kFourColumns);
}

TEST(TransferTest, TwoNeighboursLostAtOnceNeedTwoMirrors) {
  const auto data = StrategyOf("data");
  for (const int mirrors : {1, 2}) {
    auto holdings = HeldBy({1, 2, 3, 4}, 5, data, mirrors);
    holdings.erase(1);
    holdings.erase(2);
    EXPECT_EQ(Recoverable(holdings, 5, kOneColumn), mirrors == 2);
    holdings = HeldBy({1, 2, 3, 4}, 5, data, mirrors);
    holdings.erase(1);
    holdings.erase(3);
    EXPECT_TRUE(Recoverable(holdings, 5, kOneColumn));
  }
}

TEST(TransferTest, WithoutMirrorsAStageIsLostWithItsOneWorker) {
  const auto pipeline = StrategyOf("pipeline:stages=4");
  for (const int mirrors : {0, 1}) {
    auto holdings = HeldBy({1, 2, 3, 4}, 5, pipeline, mirrors);
    holdings.erase(2);
    EXPECT_EQ(Recoverable(holdings, 5, kFourColumns), mirrors == 1);
  }
}

TEST(TransferTest, WhatIsHeldOfAnotherStepIsOfNoUse) {
  const auto holdings = HeldBy({1, 2}, 5, StrategyOf("data"), 1);
  EXPECT_TRUE(Recoverable(holdings, 4, kOneColumn));
  EXPECT_FALSE(Recoverable(holdings, 6, kOneColumn));
  EXPECT_FALSE(Recoverable({}, 0, kOneColumn));
}

TEST(TransferTest, OneOnTheSameHostHandsOver) {
  const auto data = StrategyOf("data");
  auto holdings = HeldBy({1, 2}, 5, data, 1);
  auto view = ViewOf({1, 2, 3}, 5);
  view.members[1].host = view.members[2].host = "other";
  const auto plan = PlanTransfer(view, LayoutFor(data, view, 1), holdings, kOneColumn);
  ASSERT_TRUE(plan);
  for (const auto& move : *plan) {
    if (move.to == 2) {
      EXPECT_EQ(move.from, 1);
    }
  }
}

}  // namespace
}  // namespace muster::train

#include "train/run/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "train/exact/shard_program.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Layout LayoutOn(const std::vector<std::string>& hosts, const std::string& strategy, int shards,
                const std::vector<int>& servers = {}) {
  View view;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    view.members.push_back({rank + 1, hosts[rank], "", "memory", 0});
  }
  for (const int rank : servers) view.servers.push_back(static_cast<MemberId>(rank) + 1);
  return LayoutFor(*ParseStrategy(strategy, shards), view, 1);
}

TEST(RoutesTest, InsideOfAHostEverybodyGivesToTheOwner) {
  const auto layout = LayoutOn({"a", "a", "a"}, "data", 6);
  const Routes routes(layout.At(0), layout.hosts, {6, 1, true});
  for (std::size_t part = 0; part < 3; ++part) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(routes.Towards(part, rank), static_cast<int>(part));
      EXPECT_FALSE(routes.Carried(part, rank));
    }
  }
}

TEST(RoutesTest, BetweenHostsAPartGoesOnceAndAllCarryAlike) {
  const auto layout = LayoutOn({"a", "a", "b", "b"}, "data", 8);
  const Routes routes(layout.At(0), layout.hosts, {8, 1, true});
  EXPECT_EQ(routes.Towards(0, 3), 2);  // part 0 is owned on host a; of host b rank 2 carries it
  EXPECT_EQ(routes.Towards(0, 2), 0);
  EXPECT_EQ(routes.Towards(1, 2), 3);
  EXPECT_EQ(routes.Towards(2, 1), 0);
  EXPECT_EQ(routes.Towards(3, 0), 1);
  EXPECT_TRUE(routes.Carried(0, 2));
  EXPECT_FALSE(routes.Carried(0, 3));
  EXPECT_FALSE(routes.Carried(0, 1));
  const auto carried = *routes.Carried(0, 2);
  EXPECT_THAT(carried.inputs, SizeIs(2));
  EXPECT_THAT(carried.results, SizeIs(1));
  EXPECT_THAT(routes.Owned(0).inputs,
              ElementsAre(SumPlan::Input{0, false, 0}, SumPlan::Input{1, false, 1},
                          SumPlan::Input{2, true, 0}));
}

TEST(RoutesTest, AHostWithOneWorkerNeedsNobodyInBetween) {
  const auto layout = LayoutOn({"a", "b", "c"}, "data", 6);
  const Routes routes(layout.At(0), layout.hosts, {6, 1, true});
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(routes.Towards(0, rank), 0);
  EXPECT_FALSE(routes.Carried(0, 1));
}

// What all of the plans make of one number for each shard, in the end.
float Total(const Routes& routes, const Layout& layout, const Routes::Rule& rule, std::size_t part,
            const std::vector<float>& shards) {
  const auto& at = layout.At(0);
  std::vector<float> gradients;
  for (std::size_t i = 0; i < at.computers.size(); ++i) {
    for (const auto& lane : LaneRuns(at.runs[i], rule.lanes)) {
      const auto program = ProgramFor(lane, rule.shards, rule.exact);
      std::vector<float> buffers(static_cast<std::size_t>(program.buffers));
      for (const auto& compute : program.computes) {
        buffers[static_cast<std::size_t>(compute.buffer)] =
            shards[static_cast<std::size_t>(compute.shard)];
        for (const auto& add : compute.adds) {
          buffers[static_cast<std::size_t>(add.into)] +=
              buffers[static_cast<std::size_t>(add.from)];
        }
      }
      for (const auto& node : program.nodes) {
        gradients.push_back(buffers[static_cast<std::size_t>(node.buffer)]);
      }
    }
  }
  std::map<int, std::vector<float>> carried;  // by carrier
  const auto run = [&](const SumPlan& plan) {
    std::vector<const float*> from;
    for (const auto& input : plan.inputs) {
      from.push_back(input.carried ? &carried.at(input.rank).at(input.index)
                                   : &gradients.at(input.index));
    }
    std::vector<float> results(plan.results.size());
    std::vector<float*> out;
    for (auto& result : results) out.push_back(&result);
    plan.Run(from, out, 1);
    return results;
  };
  for (const int rank : at.computers) {
    if (const auto plan = routes.Carried(part, rank)) carried[rank] = run(*plan);
  }
  return run(routes.Owned(part)).at(0);
}

TEST(RoutesTest, TheSumDoesNotDependOnWhoIsOnWhichHost) {
  Random random(11);
  int some_carried = 0;
  for (int round = 0; round < 300; ++round) {
    const int shards = static_cast<int>(random.Between(1, 20));
    std::vector<float> values;
    for (int i = 0; i < shards; ++i) {
      values.push_back(static_cast<float>(random.Between(-1'000'000, 1'000'000)) * 1e-3F);
    }
    std::vector<std::string> hosts(static_cast<std::size_t>(random.Between(1, 9)));
    for (auto& host : hosts) host = std::string(1, static_cast<char>('a' + random.Between(0, 2)));
    const Routes::Rule rule{shards, static_cast<int>(random.Between(1, 2)), true};
    const auto alone = LayoutOn({"a"}, "data", shards);
    const float truth = Total(Routes(alone.At(0), alone.hosts, rule), alone, rule, 0, values);
    const bool serves = hosts.size() > 1 && random.Between(0, 2) == 0;
    const auto layout =
        serves ? LayoutOn(hosts, "server:servers=1", shards, {0}) : LayoutOn(hosts, "data", shards);
    const Routes routes(layout.At(0), layout.hosts, rule);
    for (std::size_t part = 0; part < layout.At(0).owners.size(); ++part) {
      EXPECT_EQ(Total(routes, layout, rule, part, values), truth);
      for (const int rank : layout.At(0).computers) {
        some_carried += routes.Carried(part, rank) ? 1 : 0;
      }
    }
    auto fast = rule;
    fast.exact = false;
    const Routes unordered(layout.At(0), layout.hosts, fast);
    EXPECT_NEAR(Total(unordered, layout, fast, 0, values), truth, 0.1);
  }
  EXPECT_GT(some_carried, 100);
}

TEST(LayoutTest, MirrorsAreOnOtherHostsWhereThereAreAny) {
  const auto layout = LayoutOn({"a", "a", "a", "b", "b", "b"}, "data", 6);
  std::vector<int> held(6);
  for (int rank = 0; rank < 6; ++rank) {
    const auto mirrors = layout.MirrorsOf(rank);
    ASSERT_THAT(mirrors, SizeIs(1));
    EXPECT_NE(layout.hosts[static_cast<std::size_t>(mirrors[0])],
              layout.hosts[static_cast<std::size_t>(rank)]);
    ++held[static_cast<std::size_t>(mirrors[0])];
    EXPECT_THAT(layout.PartsAt(0, mirrors[0]), ElementsAre(mirrors[0], rank));
  }
  EXPECT_THAT(held, ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(LayoutOn({"a", "a", "a"}, "data", 6).MirrorsOf(2), ElementsAre(0));
}

}  // namespace
}  // namespace muster::train

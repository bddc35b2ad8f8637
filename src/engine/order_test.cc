#include "engine/order.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/units.h"

namespace muster::engine {
namespace {

Vec Gpus(std::int64_t count) {
  Vec vec;
  vec[kGpuDim] = count * kMilli;
  return vec;
}

struct Given {
  std::int64_t quota = 0, held = 0, request = 8, weight = 1000, priority = 100;
  std::string parent = "";
};

// Queues q0, q1, ... with shares divided over `gpus`.
QueueTable Make(const std::vector<Given>& given, std::int64_t gpus) {
  std::vector<model::Queue> queues;
  for (std::size_t i = 0; i < given.size(); ++i) {
    model::Queue queue;
    queue.name = "q" + std::to_string(i);
    queue.parent = given[i].parent;
    queue.quota["gpus"] = given[i].quota * kMilli;
    queue.weight["gpus"] = given[i].weight;
    queue.priority = given[i].priority;
    queue.created_order = static_cast<std::int64_t>(i);
    queues.push_back(queue);
  }
  auto table = QueueTable::Make(queues, {});
  EXPECT_TRUE(table.has_value());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto id = static_cast<QueueId>(i + 1);
    if (!(*table)[id].children.empty()) continue;
    table->AddRequest(id, Gpus(given[i].request), +1);
    table->AddHeld(id, Gpus(given[i].held), false, +1);
  }
  table->DivideShares(Gpus(gpus), 0);
  return std::move(*table);
}

// What each leaf would be served next, and the order over that.
struct Offers {
  explicit Offers(const QueueTable& table)
      : order(table, [this](QueueId leaf) {
          ++asked;
          return offers.contains(leaf) ? &offers[leaf] : nullptr;
        }) {
    order.Reset();
  }
  std::map<QueueId, Vec> offers;
  int asked = 0;
  QueueOrder order;
};

// Which of two queues is served first if each wants one GPU: 0 or 1.
int First(const std::vector<Given>& given, std::int64_t gpus) {
  const auto table = Make(given, gpus);
  Offers all(table);
  all.offers = {{1, Gpus(1)}, {2, Gpus(1)}};
  return static_cast<int>(all.order.Next()) - 1;
}

// The leaf that comes first, found without any shortcut.
QueueId FirstByHand(const QueueTable& table, const std::map<QueueId, Vec>& offers) {
  std::map<QueueId, Vec> next = offers;  // of inner queues: what their first child is served
  QueueId at = 0;
  const std::function<QueueId(QueueId)> first = [&](QueueId parent) {
    QueueId best = kNone;
    for (const QueueId child : table[parent].children) {
      if (const QueueId below = first(child); below != kNone) next[child] = next.at(below);
      if (!next.contains(child)) continue;
      const auto rank = [&](QueueId q) { return RankOf(table, q, table[q].held, next.at(q)); };
      if (best == kNone || ServedBefore(rank(child), rank(best))) best = child;
    }
    return best;
  };
  while (!table[at].children.empty()) {
    at = first(at);
    if (at == kNone) return kNone;
  }
  return at;
}

TEST(QueueOrder, WhoIsAboveItsFairShareComesLast) {
  const auto table = Make({{.held = 5}, {.held = 3}}, 8);
  Offers all(table);
  all.offers = {{1, Gpus(1)}, {2, Gpus(5)}};
  EXPECT_EQ(all.order.Next(), 2U) << "although it would be the more saturated with its next job";
}

TEST(QueueOrder, WhoStaysWithinItsQuotaComesBeforeWhoDoesNot) {
  EXPECT_EQ(First({{.quota = 1, .held = 1}, {.quota = 3, .held = 2}}, 8), 1);
}

TEST(QueueOrder, ThenTheHigherPriority) {
  EXPECT_EQ(First({{.quota = 4, .held = 1}, {.quota = 4, .held = 2, .priority = 200}}, 8), 1);
}

TEST(QueueOrder, ThenTheLessSaturated) {
  EXPECT_EQ(First({{.quota = 4, .held = 2}, {.quota = 4, .held = 1}}, 8), 1);
}

TEST(QueueOrder, ThenTheOlder) { EXPECT_EQ(First({{.quota = 4}, {.quota = 4}}, 8), 0); }

TEST(QueueOrder, SaturationIsComparedExactly) {
  const Saturation third{1, 3}, almost{333'333'333'333'333'333, 1'000'000'000'000'000'000};
  EXPECT_TRUE(almost.LessThan(third));
  EXPECT_FALSE(third.LessThan(almost));
  EXPECT_FALSE((Saturation{1, 0}).LessThan(third)) << "something of nothing is the most";
  EXPECT_TRUE(third.LessThan(Saturation{1, 0}));
}

TEST(QueueOrder, DecidesBetweenParentsBeforeItLooksAtChildren) {
  const auto table = Make({{.quota = 4, .held = 0},
                           {.quota = 4, .held = 0},
                           {.quota = 4, .held = 3, .parent = "q0"},
                           {.quota = 2, .held = 0, .parent = "q1"},
                           {.quota = 2, .held = 2, .parent = "q1"}},
                          8);
  Offers all(table);
  for (const QueueId leaf : {3U, 4U, 5U}) all.offers[leaf] = Gpus(1);
  EXPECT_EQ(all.order.Next(), 4U) << "q1 holds 2 of 4, q0 3 of 4";
}

TEST(QueueOrder, FollowsEveryChangeOfWhatIsHeld) {
  auto table = Make({{.quota = 4}, {.quota = 4}}, 8);
  Offers all(table);
  all.offers = {{1, Gpus(1)}, {2, Gpus(1)}};
  std::vector<QueueId> served;
  for (int i = 0; i < 4; ++i) {
    served.push_back(all.order.Next());
    table.AddHeld(served.back(), Gpus(1), false, +1);
    all.order.Update(served.back());
  }
  EXPECT_EQ(served, (std::vector<QueueId>{1, 2, 1, 2}));
}

TEST(QueueOrder, ForgetsWhoHasNothingLeft) {
  const auto table = Make({{.quota = 4}, {.quota = 4}}, 8);
  Offers all(table);
  all.offers = {{1, Gpus(1)}, {2, Gpus(1)}};
  EXPECT_EQ(all.order.Next(), 1U);
  all.offers.erase(1);
  all.order.Update(1);
  EXPECT_EQ(all.order.Next(), 2U);
  all.offers.erase(2);
  all.order.Update(2);
  EXPECT_EQ(all.order.Next(), kNone);
}

TEST(QueueOrder, StartsAnewWithExactlyTheLeavesItIsGiven) {
  const auto table = Make({{.quota = 4}, {.quota = 4}, {.quota = 4}}, 12);
  Offers all(table);
  all.offers = {{1, Gpus(1)}, {2, Gpus(2)}, {3, Gpus(1)}};
  EXPECT_EQ(all.order.Next(), 1U);
  const QueueId some[] = {2, 3};
  all.order.Reset(some);
  EXPECT_EQ(all.order.Next(), 3U) << "less saturated with its next job";
  all.offers.erase(3);
  all.order.Update(3);
  EXPECT_EQ(all.order.Next(), 2U);
  all.order.Reset({});
  EXPECT_EQ(all.order.Next(), kNone);
}

TEST(QueueOrder, AsksOnlyThoseThatMayComeFirst) {
  std::vector<Given> given;
  for (int i = 0; i < 100; ++i) given.push_back({.quota = 200, .held = 10 + (i * 37) % 100});
  const auto table = Make(given, 20'000);
  Offers all(table);
  for (QueueId leaf = 1; leaf <= 100; ++leaf) all.offers[leaf] = Gpus(1);
  EXPECT_EQ(all.order.Next(), 1U) << "holds 10, the next holds 11";
  EXPECT_LE(all.asked, 3);
}

// The order with its shortcuts against all queues ranked and compared one by one.
TEST(QueueOrder, IsTheOrderOfTheTrueRanks) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<Given> given;
    for (int i = 0; i < 3; ++i) given.push_back({.quota = random.Between(0, 8), .request = 0});
    for (int i = 0; i < 12; ++i) {
      given.push_back({.quota = random.Between(0, 4),
                       .held = random.Between(0, 5),
                       .priority = 100 + random.Between(0, 1),
                       .parent = "q" + std::to_string(random.Between(0, 2))});
    }
    auto table = Make(given, 24);
    Offers all(table);
    for (QueueId leaf = 4; leaf <= 15; ++leaf) {
      if (random.Chance(80)) all.offers[leaf] = Gpus(random.Between(1, 6));
    }
    for (int turn = 0; turn < 10; ++turn) {
      const QueueId next = all.order.Next();
      ASSERT_EQ(next, FirstByHand(table, all.offers));
      if (next == kNone) break;
      table.AddHeld(next, all.offers[next], false, +1);
      if (random.Chance(50)) all.offers.erase(next);
      all.order.Update(next);
    }
  }
}

}  // namespace
}  // namespace muster::engine

#include "engine/order.h"

#include <gtest/gtest.h>

#include <vector>

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

// Which of two queues is served first if each wants one GPU: 0 or 1.
int First(const std::vector<Given>& given, std::int64_t gpus) {
  const auto table = Make(given, gpus);
  QueueOrder order(table);
  order.Offer(1, Gpus(1));
  order.Offer(2, Gpus(1));
  return static_cast<int>(order.Next()) - 1;
}

TEST(QueueOrder, WhoIsAboveItsFairShareComesLast) {
  const auto table = Make({{.held = 5}, {.held = 3}}, 8);
  QueueOrder order(table);
  order.Offer(1, Gpus(1));
  order.Offer(2, Gpus(5));
  EXPECT_EQ(order.Next(), 2U) << "although it would be the more saturated with its next job";
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
  QueueOrder order(table);
  for (const QueueId leaf : {3U, 4U, 5U}) order.Offer(leaf, Gpus(1));
  EXPECT_EQ(order.Next(), 4U) << "q1 holds 2 of 4, q0 3 of 4";
}

TEST(QueueOrder, FollowsEveryChangeOfWhatIsHeld) {
  auto table = Make({{.quota = 4}, {.quota = 4}}, 8);
  QueueOrder order(table);
  order.Offer(1, Gpus(1));
  order.Offer(2, Gpus(1));
  std::vector<QueueId> served;
  for (int i = 0; i < 4; ++i) {
    const QueueId next = order.Next();
    served.push_back(next);
    table.AddHeld(next, Gpus(1), false, +1);
    order.Offer(next, Gpus(1));
  }
  EXPECT_EQ(served, (std::vector<QueueId>{1, 2, 1, 2}));
}

TEST(QueueOrder, ForgetsWhoWithdraws) {
  const auto table = Make({{.quota = 4}, {.quota = 4}}, 8);
  QueueOrder order(table);
  EXPECT_EQ(order.Next(), kNone);
  order.Offer(1, Gpus(1));
  order.Offer(2, Gpus(1));
  order.Withdraw(1);
  EXPECT_EQ(order.Next(), 2U);
  order.Withdraw(2);
  EXPECT_EQ(order.Next(), kNone);
}

TEST(QueueOrder, StartsAnewWithExactlyTheLeavesItIsGiven) {
  const auto table = Make({{.quota = 4}, {.quota = 4}, {.quota = 4}}, 12);
  QueueOrder order(table);
  order.Offer(1, Gpus(1));
  order.Reset({2, 3}, {Gpus(2), Gpus(1)});
  EXPECT_EQ(order.Next(), 3U) << "less saturated with its next job";
  order.Withdraw(3);
  EXPECT_EQ(order.Next(), 2U);
  order.Reset({}, {});
  EXPECT_EQ(order.Next(), kNone);
}

}  // namespace
}  // namespace muster::engine

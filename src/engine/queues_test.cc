#include "engine/queues.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace muster::engine {
namespace {

model::Queue Queue(const std::string& name, const std::string& parent, std::int64_t quota) {
  model::Queue queue;
  queue.name = name;
  queue.parent = parent;
  queue.quota["gpus"] = quota * kMilli;
  return queue;
}

QueueTable Make(std::vector<model::Queue> queues, std::vector<std::string> countables = {}) {
  for (std::size_t i = 0; i < queues.size(); ++i) {
    queues[i].created_order = static_cast<std::int64_t>(i);
  }
  auto table = QueueTable::Make(queues, countables);
  EXPECT_TRUE(table.has_value());
  return std::move(*table);
}

Vec Gpus(std::int64_t count) {
  Vec vec;
  vec[kGpuDim] = count * kMilli;
  return vec;
}

TEST(Queues, RefusesUnknownParentsDoublesAndCircles) {
  const auto make = [](std::vector<model::Queue> queues) {
    return QueueTable::Make(queues, {}).has_value();
  };
  EXPECT_FALSE(make({Queue("a", "none", 0)}));
  EXPECT_FALSE(make({Queue("a", "a", 0)}));
  EXPECT_FALSE(make({Queue("a", "", 0), Queue("a", "", 0)}));
  EXPECT_FALSE(make({Queue("a", "b", 0), Queue("b", "a", 0)}));
  EXPECT_TRUE(make({Queue("a/b", "a", 0), Queue("a", "", 0)})) << "the parent may come later";
}

TEST(Queues, GuaranteeNoGpusAndAllOfTheRestWhereNothingIsNamed) {
  model::Queue plain;
  plain.name = "q";
  const auto table = Make({plain}, {"fpga"});
  const auto& queue = table[table.Find("q")];
  EXPECT_EQ(queue.quota[kGpuDim], 0);
  EXPECT_EQ(queue.quota[kCpuDim], kUnlimited);
  EXPECT_EQ(queue.quota[table.FindDim("fpga")], kUnlimited);
  EXPECT_EQ(queue.limit[kGpuDim], kUnlimited);
}

TEST(Queues, AGpuTypeIsADimensionOnceAQueueNamesIt) {
  auto named = Queue("a/x", "a", 4);
  named.quota["H100"] = 2 * kMilli;
  const auto table = Make({Queue("a", "", 4), named, Queue("b", "", 1)});
  const auto dim = table.FindDim("H100");
  ASSERT_LT(dim, table.dims());
  EXPECT_EQ(table[table.Find("a")].quota[dim], 2 * kMilli) << "the sum of its children";
  EXPECT_EQ(table[table.Find("b")].quota[dim], 0);
  EXPECT_EQ(table.FindDim("A100"), table.dims());
}

TEST(Queues, CountWhatIsHeldAlongThePath) {
  auto table = Make({Queue("a", "", 4), Queue("a/x", "a", 2), Queue("a/y", "a", 2)});
  table.AddHeld(table.Find("a/x"), Gpus(2), true, +1);
  table.AddHeld(table.Find("a/y"), Gpus(1), false, +1);
  EXPECT_EQ(table[table.Find("a")].held[kGpuDim], 3 * kMilli);
  EXPECT_EQ(table[table.Find("a")].fixed[kGpuDim], 2 * kMilli);
  table.AddHeld(table.Find("a/x"), Gpus(2), true, -1);
  EXPECT_EQ(table[0].held[kGpuDim], kMilli);
  EXPECT_EQ(table[0].fixed[kGpuDim], 0);
}

TEST(Queues, BindByTheLimitsOfTheirAncestors) {
  auto parent = Queue("a", "", 4);
  parent.limit["gpus"] = 2 * kMilli;
  auto table = Make({parent, Queue("a/x", "a", 2), Queue("a/y", "a", 2)});
  EXPECT_TRUE(table.WithinLimits(table.Find("a/x"), Gpus(2)));
  table.AddHeld(table.Find("a/y"), Gpus(1), false, +1);
  EXPECT_FALSE(table.WithinLimits(table.Find("a/x"), Gpus(2)));
  Vec cores;
  cores[kCpuDim] = kMilli;
  EXPECT_TRUE(table.WithinLimits(table.Find("a/x"), cores));
}

TEST(Queues, HoldFixedWorkToTheQuotasOfThePathCountingFixedWorkOnly) {
  auto table = Make({Queue("a", "", 2), Queue("a/x", "a", 2), Queue("a/y", "a", 2)});
  const auto x = table.Find("a/x"), y = table.Find("a/y");
  table.AddHeld(y, Gpus(2), false, +1);
  EXPECT_TRUE(table.WithinFixedQuota(x, Gpus(2)));
  table.AddHeld(y, Gpus(1), true, +1);
  EXPECT_FALSE(table.WithinFixedQuota(x, Gpus(2)));
  EXPECT_TRUE(table.WithinFixedQuota(x, Gpus(1)));
}

TEST(Queues, PartWhereTheirPathsDiverge) {
  const auto table = Make({Queue("a", "", 0), Queue("b", "", 0), Queue("a/x", "a", 0),
                           Queue("a/y", "a", 0), Queue("a/x/1", "a/x", 0)});
  const auto find = [&](const char* name) { return table.Find(name); };
  EXPECT_EQ(table.Part(find("a/x/1"), find("a/y")), std::pair(find("a/x"), find("a/y")));
  EXPECT_EQ(table.Part(find("a/x/1"), find("b")), std::pair(find("a"), find("b")));
}

TEST(Queues, DivideEachLevelOnlyWhatItsParentWasGiven) {
  auto table = Make({Queue("a", "", 2), Queue("b", "", 6), Queue("a/x", "a", 0),
                     Queue("a/y", "a", 0), Queue("b/z", "b", 6)});
  table.AddRequest(table.Find("a/x"), Gpus(8), +1);
  table.AddRequest(table.Find("a/y"), Gpus(8), +1);
  table.AddRequest(table.Find("b/z"), Gpus(8), +1);
  table.DivideShares(Gpus(8), 0);
  EXPECT_EQ(table[table.Find("a")].share[kGpuDim], 2 * kMilli);
  EXPECT_EQ(table[table.Find("a/x")].share[kGpuDim], kMilli);
  EXPECT_EQ(table[table.Find("b/z")].share[kGpuDim], 6 * kMilli);
}

TEST(Queues, PastUsePullsOnlyAtTheOverQuotaPart) {
  auto table = Make({Queue("a", "", 2), Queue("b", "", 2)});
  table.AddRequest(table.Find("a"), Gpus(8), +1);
  table.AddRequest(table.Find("b"), Gpus(8), +1);
  table.SetPastUse(table.Find("a"), 1'000'000);
  table.DivideShares(Gpus(8), 1000);
  EXPECT_LT(table[table.Find("a")].share[kGpuDim], table[table.Find("b")].share[kGpuDim]);
  EXPECT_GE(table[table.Find("a")].share[kGpuDim], 2 * kMilli);
  table.DivideShares(Gpus(8), 0);
  EXPECT_EQ(table[table.Find("a")].share[kGpuDim], 4 * kMilli) << "off: the past is ignored";
}

}  // namespace
}  // namespace muster::engine

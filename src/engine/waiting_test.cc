#include "engine/waiting.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace muster::engine {
namespace {

WaitKey Key(std::int64_t priority, std::uint64_t sequence) { return {-priority, 0, 0, sequence}; }

std::vector<JobId> Jobs(const Bucket& bucket) {
  std::vector<JobId> out;
  for (const auto& waiter : bucket.waiters()) out.push_back(waiter.job);
  return out;
}

TEST(WaitingIndex, OrdersByPriorityThenMinimumThenAgeThenArrival) {
  WaitingIndex index;
  index.Insert(1, 0, {-50, 2, 0, 0}, 0);   // above its minimum
  index.Insert(1, 0, {-50, 1, 9, 1}, 1);   // above it by less
  index.Insert(1, 0, {-50, 0, 7, 3}, 2);   // below it, younger
  index.Insert(1, 0, {-50, 0, 7, 2}, 3);   // the same age, arrived earlier
  index.Insert(1, 0, {-50, 0, 5, 4}, 4);   // older
  index.Insert(1, 0, {-75, 9, 99, 5}, 5);  // higher priority
  EXPECT_EQ(Jobs(index.bucket(index.bucket_of(0))), (std::vector<JobId>{5, 4, 3, 2, 1, 0}));
}

TEST(WaitingIndex, KeepsQueuesAndClassesApart) {
  WaitingIndex index;
  index.Insert(1, 0, Key(50, 0), 0);
  index.Insert(1, 1, Key(50, 1), 1);
  index.Insert(2, 0, Key(50, 2), 2);
  EXPECT_EQ(index.OfClass(0).size(), 2U);
  EXPECT_EQ(index.OfQueue(1).size(), 2U);
  EXPECT_EQ(index.OfQueue(2).size(), 1U);
  EXPECT_TRUE(index.OfQueue(7).empty());
  EXPECT_TRUE(index.OfClass(7).empty());
  EXPECT_EQ(index.size(), 3U);
}

TEST(WaitingIndex, CountsPrioritiesOfAQueueHighestFirst) {
  WaitingIndex index;
  EXPECT_EQ(index.PrioritiesIn(1), nullptr);
  index.Insert(1, 0, Key(25, 0), 0);
  index.Insert(1, 1, Key(75, 1), 1);
  index.Insert(1, 0, Key(75, 2), 2);
  ASSERT_NE(index.PrioritiesIn(1), nullptr);
  EXPECT_EQ(index.PrioritiesIn(1)->begin()->first, -75);
  EXPECT_EQ(index.PrioritiesIn(1)->begin()->second, 2U);
  index.Erase(1);
  index.Erase(2);
  EXPECT_EQ(index.PrioritiesIn(1)->begin()->first, -25);
}

TEST(WaitingIndex, ForgetsAJobOnceAndIgnoresStrangers) {
  WaitingIndex index;
  index.Insert(1, 0, Key(50, 0), 4);
  EXPECT_TRUE(index.Contains(4));
  index.Erase(4);
  index.Erase(4);
  index.Erase(99);
  EXPECT_FALSE(index.Contains(4));
  EXPECT_EQ(index.size(), 0U);
}

TEST(WaitingIndex, StaysSortedWhateverComesAndGoes) {
  WaitingIndex index;
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    const auto job = static_cast<JobId>(random.Between(0, 40));
    if (index.Contains(job)) {
      index.Erase(job);
    } else {
      index.Insert(1, 0, Key(random.Between(1, 3), static_cast<std::uint64_t>(i)), job);
    }
    if (index.OfQueue(1).empty()) continue;
    const auto waiters = index.bucket(index.OfQueue(1)[0].bucket).waiters();
    ASSERT_EQ(waiters.size(), index.size());
    for (std::size_t k = 1; k < waiters.size(); ++k) {
      ASSERT_LT(waiters[k - 1].key, waiters[k].key);
    }
  }
}

}  // namespace
}  // namespace muster::engine

#include "pools/local/activity.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace muster::pools {
namespace {

constexpr std::int64_t kMinute = 60'000;

class ActivityTest : public testing::Test {
 protected:
  std::int64_t Now() { return clock_.MonotonicNs() / 1'000'000; }
  void LookAfter(std::int64_t ms, std::int64_t cpu_ms, std::optional<int> gpu = {}) {
    clock_.Advance(ms);
    activity_.Look(Now(), cpu_ms, gpu, {});
  }

  ManualClock clock_;
  Activity activity_{clock_.MonotonicNs() / 1'000'000};
};

TEST_F(ActivityTest, AWorkerThatNeedsLessThanTheThresholdBecomesIdle) {
  LookAfter(kMinute, 500);
  LookAfter(kMinute, 500 + 1'199);  // two hundredths of a core would be 1200
  LookAfter(kMinute, 500 + 1'199);
  EXPECT_EQ(activity_.IdleMs(Now()), 3 * kMinute);
}

TEST_F(ActivityTest, ProcessorTimeAboveTheThresholdIsUse) {
  LookAfter(kMinute, 0);
  LookAfter(kMinute, 1'200);
  EXPECT_EQ(activity_.IdleMs(Now()), 0);
  LookAfter(kMinute, 1'200);
  EXPECT_EQ(activity_.IdleMs(Now()), kMinute);
}

TEST_F(ActivityTest, AGpuInUseIsUseWithoutAnyProcessorTime) {
  LookAfter(kMinute, 0, 0);
  EXPECT_EQ(activity_.IdleMs(Now()), kMinute);
  LookAfter(kMinute, 0, 1);
  EXPECT_EQ(activity_.IdleMs(Now()), 0);
}

TEST_F(ActivityTest, AKeyCountsFromWhenItWasTypedAndNeverTakesUseBack) {
  LookAfter(kMinute, 0);
  activity_.Typed(Now() - 10'000);
  EXPECT_EQ(activity_.IdleMs(Now()), 10'000);
  activity_.Typed(Now() - 30'000);
  EXPECT_EQ(activity_.IdleMs(Now()), 10'000);
}

TEST_F(ActivityTest, ProcessorTimeThatShrinksIsNoUse) {
  LookAfter(kMinute, 90'000);
  LookAfter(kMinute, 1'000);
  EXPECT_EQ(activity_.IdleMs(Now()), 2 * kMinute);
}

}  // namespace
}  // namespace muster::pools

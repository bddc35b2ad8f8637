#include "control/idle.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

TEST(IdleWarning, TakesATenthBetweenOneAndTenMinutesAndNeverMoreThanHalf) {
  EXPECT_EQ(IdleWarningMs(3'600'000), 360'000);
  EXPECT_EQ(IdleWarningMs(86'400'000), 600'000);
  EXPECT_EQ(IdleWarningMs(300'000), 60'000);
  EXPECT_EQ(IdleWarningMs(4'000), 2'000);
}

TEST(IdleText, SaysHowLongIsLeftAndWhatSavesTheJob) {
  state::JobRecord job;
  job.id = 7;
  job.idle_until_ms = 61'500;
  EXPECT_EQ(
      IdleText(job, 1'000),
      "job 7 is idle: released in 1m1s unless it uses a processor or a GPU, or a key is typed");
}

}  // namespace
}  // namespace muster::control

#include "shim/stopping.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::shim {
namespace {

using Act = Stopping::Act;

TEST(Stopping, AsksThenTerminatesThenKills) {
  Stopping stopping(5'000);
  EXPECT_FALSE(stopping.due_ms().has_value());
  EXPECT_EQ(stopping.Due(1'000'000), Act::kNothing);
  EXPECT_EQ(stopping.Stop(100, 30'000, true), Act::kAsk);
  EXPECT_EQ(stopping.due_ms(), 30'100);
  EXPECT_EQ(stopping.Due(30'099), Act::kNothing);
  EXPECT_EQ(stopping.Due(30'100), Act::kTerminate);
  EXPECT_EQ(stopping.due_ms(), 35'100);
  EXPECT_FALSE(stopping.killed());
  EXPECT_EQ(stopping.Due(35'100), Act::kKill);
  EXPECT_TRUE(stopping.killed());
  EXPECT_EQ(stopping.Due(35'100), Act::kNothing);
  EXPECT_EQ(stopping.Due(35'200), Act::kKill) << "what was forked meanwhile";
}

TEST(Stopping, WhoCannotBeAskedGetsTheGraceAfterSigterm) {
  Stopping stopping(5'000);
  EXPECT_EQ(stopping.Stop(0, 30'000, false), Act::kTerminate);
  EXPECT_EQ(stopping.Due(29'999), Act::kNothing);
  EXPECT_EQ(stopping.Due(30'000), Act::kKill);
}

TEST(Stopping, ToldAgainTheEarlierEndCounts) {
  Stopping stopping(5'000);
  stopping.Stop(0, 30'000, true);
  EXPECT_EQ(stopping.Stop(10, 60'000, true), Act::kNothing);
  EXPECT_EQ(stopping.due_ms(), 30'000);
  EXPECT_EQ(stopping.Stop(10, 100, true), Act::kNothing);
  EXPECT_EQ(stopping.due_ms(), 110);
}

TEST(Stopping, KillDoesNotWait) {
  Stopping stopping(5'000);
  stopping.Stop(0, 30'000, true);
  EXPECT_EQ(stopping.Kill(1), Act::kKill);
  EXPECT_TRUE(stopping.killed());
}

TEST(Stopping, AnEndlessGraceDoesNotOverflow) {
  Stopping stopping(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(stopping.Stop(1'000, std::numeric_limits<std::int64_t>::max(), true), Act::kAsk);
  EXPECT_EQ(stopping.Due(*stopping.due_ms()), Act::kTerminate);
  EXPECT_EQ(stopping.Due(*stopping.due_ms() - 1), Act::kNothing);
}

}  // namespace
}  // namespace muster::shim

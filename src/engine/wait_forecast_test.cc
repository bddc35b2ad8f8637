#include "engine/wait_forecast.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace muster::engine {
namespace {

TEST(Runtimes, WhoIsOldLeavesTheShortOnesOut) {
  Runtimes runtimes(100);
  for (int i = 1; i <= 100; ++i) runtimes.Add(i);
  EXPECT_DOUBLE_EQ(runtimes.EndsWithin(0, 50), 0.5);
  EXPECT_DOUBLE_EQ(runtimes.EndsWithin(50, 25), 0.5);
  EXPECT_DOUBLE_EQ(runtimes.EndsWithin(0, 1000), 1);
}

TEST(Runtimes, OnlyTheLatestCount) {
  Runtimes runtimes(10);
  for (int i = 0; i < 100; ++i) runtimes.Add(1000);
  for (int i = 0; i < 10; ++i) runtimes.Add(1);
  EXPECT_EQ(runtimes.size(), 10U);
  EXPECT_DOUBLE_EQ(runtimes.EndsWithin(0, 1), 1);
}

TEST(Runtimes, BeyondAllThatWasSeenItGoesOnForAsLongAgain) {
  Runtimes runtimes(100);
  for (int i = 0; i < 20; ++i) runtimes.Add(10);
  EXPECT_DOUBLE_EQ(runtimes.EndsWithin(7200, 7200), 0.5);
}

WaitForecast::Question Asked(std::uint64_t job, std::int64_t ahead) {
  return {job, "q", 1, 1 + ahead, ahead, 60.0 * static_cast<double>(ahead)};
}

// Every job waits a minute for each one before it, give or take.
TEST(WaitForecast, LearnsWhatALineOfThatLengthMeans) {
  WaitForecast forecast;
  Random random(1);
  const std::vector<WaitForecast::Running> running(8, {"q", 100, 1});
  double now = 0;
  int held = 0, asked = 0;
  for (std::uint64_t job = 0; job < 2000; ++job, now += 10'000) {
    const auto ahead = random.Between(0, 20);
    const auto answer = forecast.Ask(now, Asked(job, ahead), running);
    const double wait = static_cast<double>(60 * ahead + random.Between(0, 30));
    EXPECT_LE(answer.likely_s, answer.by_s);
    if (job >= 500) {
      ++asked;
      held += wait <= answer.by_s ? 1 : 0;
    }
    forecast.Started(now + wait, job);
  }
  EXPECT_GT(held, asked * 85 / 100);
  const auto shortly = forecast.Ask(now, Asked(9001, 1), running);
  const auto long_line = forecast.Ask(now, Asked(9002, 20), running);
  EXPECT_LT(2 * shortly.by_s, long_line.by_s);
}

TEST(WaitForecast, BoundsThatFailAreWidenedBeforeAnybodyHasStarted) {
  WaitForecast forecast;
  const std::vector<WaitForecast::Running> running(8, {"q", 100, 1});
  double now = 0;
  for (std::uint64_t job = 0; job < 50; ++job, now += 10'000) {
    forecast.Ask(now, Asked(job, 2), running);
    forecast.Started(now + 100, job);
  }
  const double before = forecast.Ask(now, Asked(100, 2), running).by_s;
  for (std::uint64_t job = 101; job < 130; ++job) forecast.Ask(++now, Asked(job, 2), running);
  const double after = forecast.Ask(now + 100'000, Asked(200, 2), running).by_s;
  EXPECT_GT(after, 1.5 * before);
}

TEST(WaitForecast, WhoStartsMeanwhileEndsAsWell) {
  WaitForecast forecast;
  for (int i = 0; i < 50; ++i) forecast.Ended("q", 1000);
  const std::vector<WaitForecast::Running> running(4, {"q", 0, 1});
  const auto one_round = forecast.Look(0, Asked(1, 3), running);
  const auto three_rounds = forecast.Look(0, Asked(1, 11), running);
  EXPECT_GE(one_round.served_s, 1000);
  EXPECT_LT(one_round.served_s, 1500);
  EXPECT_GE(three_rounds.served_s, 2500);
  EXPECT_LT(three_rounds.served_s, 5000);
}

// Nobody has started for an hour, so it will take more than the minute that others took before.
TEST(WaitForecast, ThoseThatStillWaitSpeakToo) {
  const std::vector<WaitForecast::Running> running(8, {"q", 100, 1});
  const auto bound_after = [&](double minutes) {
    WaitForecast forecast;
    double now = 0;
    for (std::uint64_t job = 0; job < 20; ++job, now += 10'000) {
      forecast.Ask(now, Asked(job, 2), running);
      forecast.Started(now + 60, job);
    }
    for (std::uint64_t job = 100; job < 140; ++job) forecast.Ask(now, Asked(job, 2), running);
    auto other = Asked(200, 2);
    other.line = "another, whose bounds have not failed yet";
    return forecast.Look(now + 60 * minutes, other, running).by_s;
  };
  EXPECT_GT(bound_after(60), 3 * bound_after(0));
}

TEST(WaitForecast, TheFirstQuestionHasAnAnswer) {
  WaitForecast forecast;
  const auto answer = forecast.Ask(0, Asked(1, 0), {});
  EXPECT_GT(answer.by_s, 0);
  EXPECT_LE(answer.by_s, 3600);
  forecast.Started(10, 7);  // never asked about
}

}  // namespace
}  // namespace muster::engine

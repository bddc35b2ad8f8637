#include "sim/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace muster::sim {
namespace {

constexpr std::int64_t kMinute = 60'000;

StoryRun Play(const Script& script, Sharing sharing) {
  auto run = PlayStory(script, sharing);
  EXPECT_TRUE(run.has_value()) << (run ? "" : run.error().message);
  return run ? std::move(*run) : StoryRun{};
}

// Two researchers with a GPU each; the first borrows the other's for a job of one hour.
Script Loan() {
  Script script;
  script.gpus = 2;
  script.day_ms = 24 * 60 * kMinute;
  script.checkpoint_every_ms = 20 * kMinute;
  script.shrink_ms = 1000;
  script.pause_ms = 5000;
  script.restart_ms = kMinute;
  script.researchers = {{"ana", 1, 1}, {"ben", 1, 1}};
  script.jobs = {{.name = "own", .owner = 0, .work_gpu_ms = 60 * kMinute},
                 {.name = "lent", .owner = 0, .arrives_ms = kMinute, .work_gpu_ms = 60 * kMinute},
                 {.name = "back", .owner = 1, .arrives_ms = 31 * kMinute, .work_gpu_ms = kMinute}};
  return script;
}

std::vector<Turn> TurnsOf(const StoryRun& run, std::size_t job) {
  std::vector<Turn> turns;
  for (const auto& what : run.happenings) {
    if (what.job == job) turns.push_back(what.turn);
  }
  return turns;
}

TEST(StoryTest, BorrowedJobPausesForTheOwnerAndResumesByItself) {
  const auto run = Play(Loan(), Sharing::kPool);
  EXPECT_THAT(TurnsOf(run, 1), testing::ElementsAre(Turn::kArrive, Turn::kStart, Turn::kPause,
                                                    Turn::kResume, Turn::kEnd));
  EXPECT_THAT(TurnsOf(run, 0), testing::ElementsAre(Turn::kArrive, Turn::kStart, Turn::kEnd));
  EXPECT_TRUE(run.records[2].entitled);
  EXPECT_EQ(run.records[2].started_ms, 31 * kMinute + 5000);
}

TEST(StoryTest, PausedJobLosesOnlyWhatWasDoneSinceItsCheckpoint) {
  const auto run = Play(Loan(), Sharing::kPool);
  const auto& lent = run.records[1];
  // It started in minute 1, saved in minute 21 and was stopped in minute 31.
  EXPECT_EQ(lent.lost_gpu_ms, 10 * kMinute);
  // 60 minutes of work, 10 done twice, one to load the checkpoint, and the pause itself.
  EXPECT_EQ(lent.ended_ms - kMinute, (60 + 10 + 1) * kMinute + lent.waited_ms);
  EXPECT_EQ(run.measures.useful_gpu_ms, 121 * kMinute);
}

TEST(StoryTest, FixedQuotasLendNothing) {
  const auto script = Loan();
  const auto run = Play(script, Sharing::kFixed);
  EXPECT_EQ(run.records[1].started_ms, run.records[0].ended_ms);
  EXPECT_EQ(run.measures.pauses, 0);
  EXPECT_GT(run.measures.idle_wanted_gpu_ms, 0);
}

TEST(StoryTest, ElasticJobProgressesWithItsSize) {
  Script script = Loan();
  script.jobs = {
      {.name = "wide", .owner = 0, .min_workers = 1, .max_workers = 2, .work_gpu_ms = 60 * kMinute},
      {.name = "back", .owner = 1, .arrives_ms = 10 * kMinute, .work_gpu_ms = 600 * kMinute}};
  const auto run = Play(script, Sharing::kPool);
  EXPECT_THAT(TurnsOf(run, 0),
              testing::ElementsAre(Turn::kArrive, Turn::kStart, Turn::kShrink, Turn::kEnd));
  // 20 of 60 GPU-minutes on two GPUs, the rest on one.
  EXPECT_EQ(run.records[0].ended_ms, 50 * kMinute);
  EXPECT_EQ(run.records[0].lost_gpu_ms, 0);
}

TEST(StoryTest, JobThatCanNeverStartIsReported) {
  Script script = Loan();
  script.jobs[0].min_workers = script.jobs[0].max_workers = 3;
  EXPECT_FALSE(PlayStory(script, Sharing::kPool).has_value());
}

class ClassicDayTest : public testing::TestWithParam<Sharing> {
 protected:
  const Script script_ = ClassicDay();
  const StoryRun run_ = Play(script_, GetParam());
};

TEST_P(ClassicDayTest, NoGpuIsHeldTwice) {
  for (const auto& a : run_.stays) {
    EXPECT_LT(a.from_ms, a.to_ms);
    for (const auto& b : run_.stays) {
      const bool overlap = a.gpu == b.gpu && a.from_ms < b.to_ms && b.from_ms < a.to_ms;
      EXPECT_TRUE(&a == &b || !overlap) << "GPU " << a.gpu << " at " << b.from_ms;
    }
  }
}

TEST_P(ClassicDayTest, EntitledJobsStartAtOnce) {
  EXPECT_GT(std::count_if(run_.records.begin(), run_.records.end(),
                          [](const JobRecord& record) { return record.entitled; }),
            3);
  EXPECT_LE(run_.measures.longest_entitled_ms, script_.pause_ms);
}

TEST_P(ClassicDayTest, EveryJobEndsAndEveryPauseIsFollowedByAResume) {
  for (std::size_t job = 0; job < script_.jobs.size(); ++job) {
    const auto turns = TurnsOf(run_, job);
    EXPECT_EQ(turns.front(), Turn::kArrive);
    EXPECT_EQ(turns.back(), Turn::kEnd);
    EXPECT_EQ(std::count(turns.begin(), turns.end(), Turn::kPause),
              std::count(turns.begin(), turns.end(), Turn::kResume));
  }
}

TEST_P(ClassicDayTest, PlaysTheSameTwice) {
  const auto again = Play(script_, GetParam());
  ASSERT_EQ(again.happenings.size(), run_.happenings.size());
  for (std::size_t i = 0; i < again.happenings.size(); ++i) {
    EXPECT_EQ(again.happenings[i].at_ms, run_.happenings[i].at_ms);
    EXPECT_EQ(again.happenings[i].job, run_.happenings[i].job);
    EXPECT_EQ(again.happenings[i].to, run_.happenings[i].to);
  }
}

INSTANTIATE_TEST_SUITE_P(BothWays, ClassicDayTest,
                         testing::Values(Sharing::kPool, Sharing::kFixed));

TEST(SharedDayTest, PoolBorrowsShrinksPausesAndResumes) {
  const auto script = ClassicDay();
  const auto run = Play(script, Sharing::kPool);
  const auto any = [&](Turn turn) {
    return std::any_of(run.happenings.begin(), run.happenings.end(),
                       [&](const Happening& what) { return what.turn == turn; });
  };
  EXPECT_TRUE(any(Turn::kShrink) && any(Turn::kPause) && any(Turn::kResume) && any(Turn::kGrow));
  const auto seats = SeatsAt(script, run, script.jobs[0].arrives_ms + kMinute);
  EXPECT_EQ(std::count_if(seats.begin(), seats.end(), [](const Seat& s) { return s.borrowed; }), 6);
}

TEST(SharedDayTest, PoolIdlesOnlyWhenNobodyWaits) {
  const auto run = Play(ClassicDay(), Sharing::kPool);
  EXPECT_EQ(run.measures.idle_wanted_gpu_ms, 0);
}

TEST(SharedDayTest, PoolDoesMoreThanFixedQuotas) {
  const auto script = ClassicDay();
  const auto pool = Play(script, Sharing::kPool).measures;
  const auto fixed = Play(script, Sharing::kFixed).measures;
  EXPECT_GT(pool.useful_gpu_ms, fixed.useful_gpu_ms);
  EXPECT_LT(pool.mean_completion_ms, fixed.mean_completion_ms);
  EXPECT_LT(pool.all_done_ms, fixed.all_done_ms);
}

}  // namespace
}  // namespace muster::sim

#include "sim/past/play_past.h"

#include "sim/job_speed.h"
#include "sim/jobs/generate.h"
#include "sim/past/past_fixture.h"

namespace muster::sim {
namespace {

using testing::HasSubstr;

using PlayPastTest = PastFixture;

model::Checkpoint Saves(std::int64_t grace_ms, std::int64_t every_ms, std::int64_t restart_ms) {
  model::Checkpoint checkpoint;
  checkpoint.dir = "/c";
  checkpoint.grace_ms = grace_ms;
  checkpoint.every_ms = every_ms;
  checkpoint.restart_cost_ms = restart_ms;
  return checkpoint;
}

engine::Policy WithoutUse() {
  engine::Policy policy;
  policy.decay_half_life_ms = 0;
  return policy;
}

TEST_F(PlayPastTest, JobsOfOneQueueRunInTheOrderTheyCame) {
  Add({.at_s = 0, .least = 4, .most = 4, .seconds = 100});
  Add({.at_s = 1, .least = 4, .most = 4, .seconds = 50});
  Add({.at_s = 2, .least = 4, .most = 4, .seconds = 10});
  const auto played = Play();
  EXPECT_EQ(played.jobs[0].started_ms, 0);
  EXPECT_EQ(played.jobs[0].ended_ms, 100'000);
  EXPECT_EQ(played.jobs[1].started_ms, 100'000);
  EXPECT_EQ(played.jobs[2].started_ms, 150'000);
  EXPECT_EQ(played.last_ms, 160'000);
  EXPECT_EQ(played.stuck, 0);
  EXPECT_EQ(HeldBetween(played.held, 0, 160'000), 4 * 160'000);
  EXPECT_EQ(HeldBetween(played.held, 159'000, 300'000), 4'000) << "and nothing after the last end";
}

TEST_F(PlayPastTest, APausedJobWithoutACheckpointStartsOver) {
  Add({.least = 4, .most = 4, .seconds = 100, .priority = 10});
  Add({.at_s = 40, .least = 4, .most = 4, .seconds = 10, .priority = 90});
  const auto played = Play();
  EXPECT_EQ(played.jobs[1].started_ms, 40'000);
  EXPECT_EQ(played.jobs[0].pauses, 1);
  EXPECT_EQ(played.jobs[0].lost_gpu_ms, 4 * 40'000);
  EXPECT_EQ(played.jobs[0].ended_ms, 150'000) << "all of it again after the other";
}

TEST_F(PlayPastTest, ACheckpointKeepsTheWorkAndCostsItsGrace) {
  Add({.least = 4,
       .most = 4,
       .seconds = 100,
       .priority = 10,
       .checkpoint = Saves(5'000, 0, 2'000),
       .checkpoints = true});
  Add({.at_s = 40, .least = 4, .most = 4, .seconds = 10, .priority = 90});
  const auto played = Play();
  EXPECT_EQ(played.jobs[1].started_ms, 45'000);
  EXPECT_EQ(played.jobs[0].lost_gpu_ms, 0);
  EXPECT_EQ(played.jobs[0].ended_ms, 55'000 + 2'000 + 60'000);
}

TEST_F(PlayPastTest, WithAnIntervalWhatCameAfterTheLastCheckpointIsLost) {
  Add({.least = 4,
       .most = 4,
       .seconds = 100,
       .priority = 10,
       .checkpoint = Saves(0, 15'000, 0),
       .checkpoints = true});
  Add({.at_s = 40, .least = 4, .most = 4, .seconds = 10, .priority = 90});
  const auto played = Play();
  EXPECT_EQ(played.jobs[0].lost_gpu_ms, 4 * 10'000);
  EXPECT_EQ(played.jobs[0].ended_ms, 50'000 + 70'000);
}

TEST_F(PlayPastTest, AnElasticJobWorksInProportionToItsWorkers) {
  Add({.queue = "a", .least = 1, .most = 4, .seconds = 100});  // 400 GPU-seconds
  Add({.queue = "b", .at_s = 50, .least = 2, .most = 2, .seconds = 50});
  const auto played = Play(WithoutUse());
  EXPECT_EQ(played.jobs[1].started_ms, 50'000);
  EXPECT_EQ(played.jobs[0].pauses, 0) << "it gives two GPUs back and goes on";
  EXPECT_EQ(played.jobs[0].ended_ms, 50'000 + 50'000 + 25'000);
  EXPECT_GE(played.jobs[0].resizes, 2);
}

TEST_F(PlayPastTest, AGangThatIsFormedAnewPaysForEveryResize) {
  auto& job = Add({.queue = "a",
                   .least = 1,
                   .most = 4,
                   .seconds = 100,
                   .checkpoint = Saves(3'000, 0, 2'000),
                   .checkpoints = true});
  job.regroups = true;
  Add({.queue = "b", .at_s = 50, .least = 2, .most = 2, .seconds = 50});
  const auto played = Play(WithoutUse());
  EXPECT_EQ(played.jobs[1].started_ms, 53'000);
  // 53 s to 103 s with two, of which the restart takes 2 s; then it grows, which takes 5 s.
  EXPECT_EQ(played.jobs[0].ended_ms, 103'000 + 5'000 + (200'000 - 2 * 48'000) / 4);
}

TEST_F(PlayPastTest, AChangeOfSizeCostsWhatTheWorkersMeasured) {
  auto& job = Add({.queue = "a", .least = 1, .most = 4, .seconds = 100});
  job.pause_ms = 4'000;
  Add({.queue = "b", .at_s = 50, .least = 2, .most = 2, .seconds = 50});
  const auto played = Play(WithoutUse());
  EXPECT_EQ(played.jobs[0].resizes, 2);
  // Two for 50 s and four for the rest, each begun 4 s late.
  EXPECT_EQ(played.jobs[0].ended_ms, 100'000 + 4'000 + (200'000 - 2 * 46'000) / 4);
}

// A step takes as long on two GPUs as on one but for synchronising, which costs as much again.
std::shared_ptr<const state::SpeedRecord> HalfAsGood() {
  auto speed = std::make_shared<state::SpeedRecord>();
  for (const int gpus : {1, 2, 4}) {
    model::Speed told;
    told.gpus = gpus;
    told.samples = 32;
    told.compute_us = 100'000;
    told.step_us = gpus == 1 ? 100'000 : 200'000;
    told.first_batch = told.most_batch = 128;
    told.least_samples = told.most_samples = 32;
    speed->told.push_back(told);
    speed->latest = told;
  }
  return speed;
}

TEST_F(PlayPastTest, WhereAJobToldItsSpeedAWorkerCountsAsMuchAsItAdds) {
  const auto speed = SpeedOf(*HalfAsGood());
  EXPECT_EQ(PaceOf(nullptr, {4, 1, 4}), 4 * kMilli);
  EXPECT_EQ(PaceOf(&speed, {1, 1, 1}), kMilli);
  EXPECT_GT(PaceOf(&speed, {4, 1, 4}), kMilli);
  EXPECT_LT(PaceOf(&speed, {4, 1, 4}), 3 * kMilli);
  auto& job = Add({.least = 1, .most = 4});
  job.speed = HalfAsGood();
  job.work = 100'000 * kMilli;  // 100 s of one worker
  const auto played = Play();
  EXPECT_GT(played.jobs[0].ended_ms, 100'000 / 3);
  EXPECT_LT(played.jobs[0].ended_ms, 100'000);
}

TEST_F(PlayPastTest, ThePolicyDecides) {
  Add({.least = 4, .most = 4, .seconds = 100, .priority = 10});
  Add({.at_s = 40, .least = 4, .most = 4, .seconds = 10, .priority = 90});
  engine::Policy policy;
  policy.preempt = false;
  EXPECT_EQ(Play(policy).jobs[1].started_ms, 100'000);
}

TEST_F(PlayPastTest, WhatTimeAloneChangesIsSeen) {
  past_.queues[0].preempt_min_runtime_ms = 70'000;
  Add({.least = 4, .most = 4, .seconds = 200, .priority = 10});
  Add({.at_s = 1, .least = 4, .most = 4, .seconds = 10, .priority = 90});
  EXPECT_EQ(Play().jobs[1].started_ms, 70'000);
}

TEST_F(PlayPastTest, AJobFollowsOthersAndAnArrayKeepsItsBound) {
  model::Job sweep = *Add({.seconds = 10}).spec;
  sweep.array = model::ArrayRange{0, 3, 2};
  past_.jobs.clear();
  const auto spec = std::make_shared<const model::Job>(sweep);
  for (JobNumber task = 2; task <= 4; ++task) {  // the last one, 5, had ended before
    auto& job = Add({.seconds = 10});
    job.spec = spec;
    job.id = task;
    job.array = 1;
  }
  auto& next = Add({.seconds = 10});
  next.id = 6;
  next.after = {1};
  const auto played = Play();
  EXPECT_EQ(played.jobs[0].started_ms, 0);
  EXPECT_EQ(played.jobs[1].started_ms, 0);
  EXPECT_EQ(played.jobs[2].started_ms, 10'000) << "two at once";
  EXPECT_EQ(played.jobs[3].started_ms, 20'000);
}

TEST_F(PlayPastTest, WhoCannotRunHereIsGivenUp) {
  Add({.least = 8, .most = 8});
  past_.queues[1].limit["gpus"] = 0;
  Add({.queue = "b"});
  Add({.seconds = 30});
  const auto played = Play();
  EXPECT_EQ(played.stuck, 2);
  EXPECT_EQ(played.jobs[2].ended_ms, 30'000);
}

TEST_F(PlayPastTest, ItCanBeStopped) {
  for (int i = 0; i < 1'000; ++i) Add({.at_s = i});
  const auto played = PlayPast(
      past_, {}, [](double) -> Result<void> { return Fail(ErrorCode::kUnavailable, "enough"); });
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().message, "enough");
}

TEST_F(PlayPastTest, TheSamePastAndPolicyGiveTheSame) {
  const auto jobs = GenerateJobs({.jobs = 300, .seed = 7, .like = "philly", .jobs_per_hour = 200});
  ASSERT_TRUE(jobs);
  const auto past = PastOf({"plain", *jobs, 0}, 8, 8, {});
  ASSERT_TRUE(past);
  const auto one = PlayPast(*past, {});
  const auto two = PlayPast(*past, {});
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->stuck, 0);
  EXPECT_EQ(one->cycles, two->cycles);
  for (std::size_t i = 0; i < past->jobs.size(); ++i) {
    ASSERT_EQ(one->jobs[i].started_ms, two->jobs[i].started_ms);
    ASSERT_EQ(one->jobs[i].ended_ms, two->jobs[i].ended_ms);
  }
}

TEST_F(PlayPastTest, AQueueFileMustHaveTheQueuesOfTheTrace) {
  const auto jobs = GenerateJobs({.jobs = 3, .seed = 7, .like = "philly"});
  ASSERT_TRUE(jobs);
  const auto past = PastOf({"plain", *jobs, 0}, 8, 8, past_.queues);
  ASSERT_FALSE(past);
  EXPECT_THAT(past.error().message, HasSubstr("which the queue file does not have"));
}

TEST_F(PlayPastTest, ATraceOfMoreWorkThanCanBeCountedIsRefused) {
  TraceJob job;
  job.gpus = 1'000'000;
  job.duration_ms = 300 * 31'536'000'000;
  const auto endless = PastOf({"plain", {job}, 0}, 1, 8, {});
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().message, HasSubstr("300000000 years of GPU time"));
  job.duration_ms = 1;
  const auto wide = PastOf({"plain", std::vector<TraceJob>(21, job), 0}, 1, 8, {});
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().message, HasSubstr("21000000 workers"));
}

}  // namespace
}  // namespace muster::sim

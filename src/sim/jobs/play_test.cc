#include "sim/jobs/play.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <string>

#include "base/random.h"
#include "sim/jobs/fifo.h"
#include "sim/jobs/gavel.h"
#include "sim/jobs/las.h"
#include "sim/jobs/muster_jobs.h"
#include "sim/jobs/srtf.h"

namespace muster::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1000;

TraceJob Job(std::int64_t submit_s, std::int64_t gpus, std::int64_t duration_s,
             std::string queue = "default") {
  TraceJob job;
  job.queue = std::move(queue);
  job.submit_ms = submit_s * kSecond;
  job.gpus = gpus;
  job.duration_ms = duration_s * kSecond;
  return job;
}

// Writes down what it hears: "0+a 5-a" for the first job that comes, starts and so on.
class Diary : public JobWatcher {
 public:
  void Submitted(const JobPlay& play, JobIndex job) override { Note(play, '?', job); }
  void Started(const JobPlay& play, JobIndex job) override { Note(play, '+', job); }
  void Stopped(const JobPlay& play, JobIndex job) override { Note(play, '-', job); }
  void Ended(const JobPlay& play, JobIndex job) override { Note(play, '.', job); }
  std::string text;

 private:
  void Note(const JobPlay& play, char what, JobIndex job) {
    text += (text.empty() ? "" : " ") + std::to_string(play.now_ms() / kSecond) + what +
            static_cast<char>('a' + job);
  }
};

std::string Told(const std::vector<TraceJob>& jobs, std::int64_t gpus, JobPolicy& policy) {
  Diary diary;
  JobPlay play(jobs, gpus, &diary);
  const auto played = play.Run(policy);
  EXPECT_TRUE(played) << (played ? "" : played.error().message);
  return diary.text;
}

TEST(Fifo, NobodyPassesTheOneWhoWaitsFirst) {
  Fifo fifo;
  EXPECT_EQ(Told({Job(0, 2, 10), Job(1, 4, 5), Job(2, 1, 1)}, 4, fifo),
            "0?a 0+a 1?b 2?c 10.a 10+b 15.b 15+c 16.c");
}

TEST(Srtf, TheShortestRunsAndTheLongestGivesWay) {
  Srtf srtf;
  EXPECT_EQ(Told({Job(0, 2, 10), Job(0, 2, 20), Job(5, 2, 4)}, 4, srtf),
            "0?a 0?b 0+a 0+b 5?c 5-b 5+c 9.c 9+b 10.a 24.b");
}

TEST(Srtf, WhatIsLeftBesideTheShortestGoesToWhoeverFits) {
  Srtf srtf;
  EXPECT_EQ(Told({Job(0, 3, 10), Job(0, 2, 11), Job(0, 1, 30)}, 4, srtf),
            "0?a 0?b 0?c 0+a 0+c 10.a 10+b 21.b 30.c");
}

// Starts the first job on what it asks for, and gives it twice as many at the next submission.
class Doubler : public JobPolicy {
 public:
  void Submitted(const JobPlay& /*play*/, JobIndex job) override { came_ = job; }
  void Ended(const JobPlay& /*play*/, JobIndex /*job*/) override {}
  void Decide(JobPlay& play) override {
    if (came_ == 0 && !play.Runs(0)) play.Start(0);
    if (came_ != 1) return;
    play.Change(0, 4);
    play.Start(1);
    came_ = 2;
  }

 private:
  JobIndex came_ = 0;
};

// 40 s of 100 are done; after 10 s without progress the other 60 take 0.55 of their time.
TEST(JobPlay, AJobGoesOnFasterOnMoreGpusAfterItsRestart) {
  const std::vector<TraceJob> jobs = {Job(0, 2, 100), Job(40, 1, 1)};
  Doubler doubler;
  JobPlay play(jobs, 5, nullptr, {.restart_ms = 10 * kSecond});
  ASSERT_TRUE(play.Run(doubler));
  EXPECT_EQ(play.track(0).ended_ms, (40 + 10 + 33) * kSecond);
  EXPECT_EQ(play.track(0).changes, 1);
  EXPECT_EQ(play.track(0).preemptions, 0);
  EXPECT_EQ(play.lost_gpu_ms(), 4 * 10 * kSecond);
  EXPECT_EQ(play.free_gpus(), 5);
}

// 3,250 GPU-seconds on one GPU: then whoever waits in the first queue goes first.
TEST(Las, WhoHasUsedMuchGivesWayToWhoHasUsedLittle) {
  Las las;
  EXPECT_EQ(Told({Job(0, 1, 5000), Job(10, 1, 100), Job(4000, 1, 100)}, 1, las),
            "0?a 0+a 10?b 3250-a 3250+b 3350.b 3350+a 4000?c 4000-a 4000+c 4100.c 4100+a 5200.a");
}

TEST(Las, WhoIsStoppedWaitsBeforeWhoWaited) {
  Las las;
  // In the second queue b waits since 6500, and a is stopped for c at 7000: a goes on before b.
  const auto told = Told({Job(0, 1, 4000), Job(1, 1, 4000), Job(7000, 1, 10)}, 1, las);
  EXPECT_EQ(told,
            "0?a 0+a 1?b 3250-a 3250+b 6500-b 6500+a 7000?c 7000-a 7000+c 7010.c 7010+a "
            "7260.a 7260+b 8010.b");
}

// Rounds of 360 s. Two jobs on one GPU take turns.
TEST(Gavel, MaxMinGivesEveryJobTheSameGpuTime) {
  Gavel gavel(Gavel::Aim::kMaxMin);
  EXPECT_EQ(Told({Job(0, 1, 720), Job(0, 1, 720)}, 1, gavel),
            "0?a 0?b 0+a 360-a 360+b 720-b 720+a 1080.a 1080+b 1440.b");
}

// On three GPUs the level is 1: c, which asks for one, runs all the time, and a and b, which ask
// for two, half of it.
TEST(Gavel, MaxMinLetsAJobThatAsksForLittleRunAllTheTime) {
  const std::vector<TraceJob> jobs = {Job(0, 2, 3600), Job(0, 2, 3600), Job(0, 1, 3600)};
  JobPlay play(jobs, 3);
  Gavel gavel(Gavel::Aim::kMaxMin);
  ASSERT_TRUE(play.Run(gavel));
  EXPECT_EQ(play.track(0).ended_ms, 6'840'000);
  EXPECT_EQ(play.track(1).ended_ms, 7'200'000);
  EXPECT_EQ(play.track(2).ended_ms, 3'600'000);
}

TEST(Gavel, MakespanLetsTheLongJobRunAllTheTime) {
  const std::vector<TraceJob> jobs = {Job(0, 1, 1800), Job(0, 1, 1800), Job(0, 1, 3600)};
  JobPlay play(jobs, 2);
  Gavel gavel(Gavel::Aim::kMakespan);
  ASSERT_TRUE(play.Run(gavel));
  for (JobIndex job = 0; job < jobs.size(); ++job) EXPECT_LE(play.track(job).ended_ms, 3'600'000);
}

TEST(Gavel, WhoComesInsideARoundWaitsForTheNext) {
  Gavel gavel(Gavel::Aim::kMaxMin);
  EXPECT_EQ(Told({Job(0, 1, 500), Job(100, 1, 60)}, 2, gavel), "0?a 0+a 100?b 360+b 420.b 500.a");
}

// A year of one job: there is something to decide when one comes inside a round, at the next round,
// and at the ends.
TEST(Gavel, WhileAllRunItSleepsUntilSomebodyComes) {
  class Counter : public JobWatcher {
   public:
    Result<void> Decided(const JobPlay& /*play*/) override {
      ++decided;
      return {};
    }
    int decided = 0;
  };
  const std::vector<TraceJob> jobs = {Job(0, 1, 31'536'000), Job(100, 1, 60)};
  Gavel gavel(Gavel::Aim::kMaxMin);
  Counter counter;
  JobPlay play(jobs, 2, &counter);
  ASSERT_TRUE(play.Run(gavel));
  EXPECT_EQ(play.track(1).started_ms, 360 * kSecond);
  EXPECT_EQ(counter.decided, 5);
}

TEST(Play, WhoIsStoppedAndStartedInOneMomentWentOn) {
  class Restless : public Fifo {
   public:
    void Decide(JobPlay& play) override {
      Fifo::Decide(play);
      if (play.ended() > 0 || !play.Runs(0)) return;
      play.Stop(0);
      play.Start(0);
    }
  };
  Restless restless;
  EXPECT_EQ(Told({Job(0, 1, 10), Job(5, 1, 1)}, 2, restless), "0?a 0+a 5?b 5+b 6.b 10.a");
}

TEST(Play, APolicyThatStartsNobodyIsFoundOut) {
  class Idle : public Fifo {
   public:
    void Decide(JobPlay& /*play*/) override {}
  };
  Idle idle;
  const std::vector<TraceJob> jobs = {Job(0, 1, 10)};
  EXPECT_FALSE(JobPlay(jobs, 1).Run(idle));
}

// --- The same rules in their plainest form, to compare with.

class PlainSrtf : public JobPolicy {
 public:
  void Submitted(const JobPlay& /*play*/, JobIndex job) override { present_.push_back(job); }
  void Ended(const JobPlay& /*play*/, JobIndex job) override { std::erase(present_, job); }
  void Decide(JobPlay& play) override {
    std::ranges::sort(present_, {},
                      [&](JobIndex job) { return std::pair(play.RemainingMs(job), job); });
    for (const JobIndex job : present_) {
      if (play.Runs(job)) play.Stop(job);
    }
    for (const JobIndex job : present_) {
      if (play.job(job).gpus <= play.free_gpus()) play.Start(job);
    }
  }

 private:
  std::vector<JobIndex> present_;
};

class PlainLas : public JobPolicy {
 public:
  void Submitted(const JobPlay& /*play*/, JobIndex job) override { queues_[0].push_back(job); }
  void Ended(const JobPlay& /*play*/, JobIndex job) override {
    for (auto& queue : queues_) queue.remove(job);
  }
  void Decide(JobPlay& play) override {
    std::vector<std::pair<std::size_t, JobIndex>> demoted;
    for (std::size_t i = 0; i < 2; ++i) {
      for (const JobIndex job : queues_[i]) {
        const bool reached = play.DoneMs(job) * play.job(job).gpus >= kLimits[i];
        if (play.Runs(job) && reached) demoted.emplace_back(i, job);
      }
    }
    std::ranges::sort(demoted, {}, &std::pair<std::size_t, JobIndex>::second);
    for (const auto& [i, job] : demoted) {
      queues_[i].remove(job);
      queues_[i + 1].push_back(job);
    }
    std::vector<JobIndex> runs;
    auto room = play.gpus();
    for (auto& queue : queues_) {
      for (const JobIndex job : queue) {
        if (play.job(job).gpus > room) continue;
        room -= play.job(job).gpus;
        runs.push_back(job);
      }
    }
    for (auto& queue : queues_) {
      for (const JobIndex job : queue) {
        if (play.Runs(job)) play.Stop(job);
      }
    }
    for (const JobIndex job : runs) play.Start(job);
    next_ms_ = kNeverMs;
    for (std::size_t i = 0; i < 3; ++i) {
      std::list<JobIndex> waiting;
      for (auto job = queues_[i].begin(); job != queues_[i].end();) {
        const auto next = std::next(job);
        const auto gpus = play.job(*job).gpus;
        if (!play.Runs(*job)) {
          waiting.splice(waiting.end(), queues_[i], job);
        } else if (i < 2) {
          const auto left = kLimits[i] - play.DoneMs(*job) * gpus;
          const auto after = std::max<std::int64_t>(1, (left + gpus - 1) / gpus);
          next_ms_ = std::min(next_ms_, play.now_ms() + after);
        }
        job = next;
      }
      queues_[i].splice(queues_[i].end(), waiting);
    }
  }
  std::int64_t NextMs() const override { return next_ms_; }

 private:
  static constexpr std::int64_t kLimits[] = {3'250'000, 7'200'000};
  std::list<JobIndex> queues_[3];
  std::int64_t next_ms_ = kNeverMs;
};

// Decides at every round, whether there is something to decide or not.
class WakefulGavel : public Gavel {
 public:
  using Gavel::Gavel;
  void Decide(JobPlay& play) override {
    Gavel::Decide(play);
    wakes_ms_ = (play.now_ms() / kRoundMs + 1) * kRoundMs;
  }
  std::int64_t NextMs() const override { return wakes_ms_; }

 private:
  std::int64_t wakes_ms_ = kNeverMs;
};

std::vector<TraceJob> Draw(std::uint64_t seed, int jobs) {
  Random random(seed);
  std::vector<TraceJob> drawn;
  std::int64_t now_s = 0;
  for (int i = 0; i < jobs; ++i) {
    now_s += random.Between(0, 900);
    drawn.push_back(Job(now_s, std::int64_t{1} << random.Between(0, 4), random.Between(1, 6000)));
  }
  return drawn;
}

std::vector<std::int64_t> Ends(const std::vector<TraceJob>& jobs, JobPolicy& policy) {
  JobPlay play(jobs, 16);
  EXPECT_TRUE(play.Run(policy));
  std::vector<std::int64_t> ends;
  for (JobIndex i = 0; i < jobs.size(); ++i) ends.push_back(play.track(i).ended_ms);
  return ends;
}

TEST(Policies, DecideAsTheirRulesWithoutAnyIndex) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto jobs = Draw(seed, 120);
    Srtf srtf;
    PlainSrtf plain_srtf;
    EXPECT_EQ(Ends(jobs, srtf), Ends(jobs, plain_srtf)) << "srtf, seed " << seed;
    Las las;
    PlainLas plain_las;
    EXPECT_EQ(Ends(jobs, las), Ends(jobs, plain_las)) << "tiresias, seed " << seed;
    for (const auto aim : {Gavel::Aim::kMaxMin, Gavel::Aim::kMakespan}) {
      Gavel gavel(aim);
      WakefulGavel wakeful(aim);
      EXPECT_EQ(Ends(jobs, gavel), Ends(jobs, wakeful)) << "gavel, seed " << seed;
    }
  }
}

// --- The engine as a policy.

std::string ToldByMuster(const std::vector<TraceJob>& jobs, std::int64_t gpus) {
  const auto muster = MusterJobs::Make(jobs, gpus / 2, 2);
  EXPECT_TRUE(muster) << (muster ? "" : muster.error().message);
  return Told(jobs, gpus, **muster);
}

TEST(MusterJobs, AGangStartsWholeOnAnyGpusAndSmallerOnesPassIt) {
  EXPECT_EQ(ToldByMuster({Job(0, 3, 10), Job(1, 3, 10), Job(2, 1, 2)}, 4),
            "0?a 0+a 1?b 2?c 2+c 4.c 10.a 10+b 20.b");
}

TEST(MusterJobs, AQueueTakesBackItsShareAndTheOtherGoesOnLater) {
  const std::vector<TraceJob> jobs = {Job(0, 2, 10, "one"), Job(0, 2, 10, "one"),
                                      Job(4, 2, 5, "two")};
  EXPECT_EQ(ToldByMuster(jobs, 4), "0?a 0?b 0+a 0+b 4?c 4-b 4+c 9.c 9+b 10.a 15.b");
}

TEST(MusterJobs, AWatcherCanAskTheEngineBeforeAndAfterItDecides) {
  class Curious : public JobWatcher {
   public:
    explicit Curious(const MusterJobs& muster) : muster_(muster) {}
    void Submitted(const JobPlay& /*play*/, JobIndex job) override {
      text += StateOf(job).active == 0 ? "w" : "r";
    }
    void Started(const JobPlay& /*play*/, JobIndex job) override {
      text += StateOf(job).Satisfied() ? "R" : "W";
    }
    std::string text;

   private:
    const engine::JobState& StateOf(JobIndex job) const {
      return muster_.cluster().job(muster_.IdOf(job));
    }
    const MusterJobs& muster_;
  };
  const std::vector<TraceJob> jobs = {Job(0, 2, 10), Job(1, 2, 10)};
  const auto muster = MusterJobs::Make(jobs, 1, 2);
  ASSERT_TRUE(muster);
  Curious curious(**muster);
  JobPlay play(jobs, 2, &curious);
  ASSERT_TRUE(play.Run(**muster));
  EXPECT_EQ(curious.text, "wRwR");
}

TEST(MusterJobs, JobsOfOneNameAreSeveralJobs) {
  std::vector<TraceJob> jobs(3, Job(0, 1, 10));
  for (auto& job : jobs) job.name = "1-1";
  EXPECT_EQ(ToldByMuster(jobs, 4), "0?a 0?b 0?c 0+a 0+b 0+c 10.a 10.b 10.c");
}

TEST(MusterJobs, MoreWorkersThanThereIsRoomForAreRefused) {
  const std::vector<TraceJob> jobs(21, Job(0, 1'000'000, 10));
  const auto muster = MusterJobs::Make(jobs, 1, 2);
  ASSERT_FALSE(muster);
  EXPECT_THAT(muster.error().message, HasSubstr("21000000 workers"));
  const std::vector<TraceJob> most(20, Job(0, 1'000'000, 10));
  EXPECT_TRUE(MusterJobs::Make(most, 1, 2));
  EXPECT_FALSE(MusterJobs::Make(most, 1, 2, {.elastic = true})) << "which have twice as many";
}

TEST(MusterJobs, EveryJobEndsAfterAllItsWork) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto jobs = Draw(seed, 200);
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].queue = std::to_string(i % 3);
    const auto muster = MusterJobs::Make(jobs, 4, 4);
    ASSERT_TRUE(muster);
    JobPlay play(jobs, 16);
    ASSERT_TRUE(play.Run(**muster));
    for (JobIndex i = 0; i < jobs.size(); ++i) {
      const auto& track = play.track(i);
      EXPECT_GE(track.ended_ms - track.started_ms, jobs[i].duration_ms);
      EXPECT_EQ(track.preemptions == 0, track.ended_ms - track.started_ms == jobs[i].duration_ms);
    }
  }
}

}  // namespace
}  // namespace muster::sim

#include "engine/resizing.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "engine/cycle.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kMinute = 60'000;

class ResizingTest : public testing::Test {
 protected:
  void SetUp() override { Make({}); }

  void Make(const Policy& policy, int nodes = 2) {
    engine::Setup setup;
    setup.queues.emplace_back().name = "q";
    setup.queues.emplace_back().name = "other";
    setup.policy = policy;
    cluster_ = std::move(*Cluster::Make(std::move(setup)));
    scheduler_ = std::make_unique<Scheduler>(*cluster_);
    for (int i = 0; i < nodes; ++i) {
      model::Node node;
      node.name = "n" + std::to_string(i);
      node.gpus.resize(4);
      EXPECT_TRUE(cluster_->AddNode(node).has_value());
    }
    now_ms_ = 0;
  }

  JobId Add(const std::string& name, int minimum, int maximum, const std::string& queue = "q") {
    model::Job job;
    job.name = name;
    job.queue = queue;
    job.groups.emplace_back().minimum = minimum;
    auto& role = job.roles.emplace_back();
    role.count = maximum;
    role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    return *cluster_->AddJob(job, now_ms_);
  }

  // A job whose step costs `sync_s` more on several GPUs, where one alone takes a second.
  void Report(JobId job, double sync_s) {
    GoodputModel model;
    model.steps.compute_b = 1.0 / 32;
    model.steps.within_a = model.steps.across_a = sync_s;
    model.grad_sqr = 1;
    model.grad_var = 1e6;  // every sample is worth it
    model.limits = {32, 32 * 64, 32, 32};
    const auto most = static_cast<int>(cluster_->job(job).workers.size());
    cluster_->ReportSpeed(job, JobSpeed(model, most));
  }

  // Cycles until nothing happens any more; who is told to leave is gone at once.
  int Settle() {
    int changes = 0;
    for (int round = 0; round < 10; ++round) {
      const auto plan = scheduler_->Cycle(now_ms_);
      if (plan.empty()) return changes;
      for (const auto& action : plan.actions) {
        ++changes;
        rules_.push_back(action.rule);
        if (action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow) {
          continue;
        }
        cluster_->ReportLeft({action.job, action.worker});
      }
    }
    ADD_FAILURE() << "the engine does not come to rest";
    return changes;
  }
  int Later(std::int64_t ms) {
    now_ms_ += ms;
    return Settle();
  }

  std::uint32_t Gpus(JobId job) const { return cluster_->job(job).active; }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Scheduler> scheduler_;
  std::int64_t now_ms_ = 0;
  std::vector<model::Rule> rules_;
};

TEST_F(ResizingTest, WhoScalesGetsTheGpusOfWhoDoesNot) {
  const JobId good = Add("good", 1, 8), bad = Add("bad", 1, 8);
  Settle();
  EXPECT_EQ(Gpus(good) + Gpus(bad), 8U);
  Report(good, 0.01);
  Report(bad, 100);
  Later(kMinute);
  EXPECT_EQ(Gpus(good), 4U);
  EXPECT_EQ(Gpus(bad), 1U);
  for (const auto rule : rules_) {
    EXPECT_TRUE(rule == model::Rule::kResize || rule == model::Rule::kFreeCapacity);
  }
}

TEST_F(ResizingTest, OnASettledClusterNothingHappens) {
  const JobId a = Add("a", 1, 8), b = Add("b", 1, 8), c = Add("c", 1, 4);
  Settle();
  Report(a, 0.1);
  Report(b, 100);
  Report(c, 0.2);
  EXPECT_GT(Later(kMinute), 0);
  EXPECT_EQ(Later(0), 0);
  EXPECT_EQ(Later(10 * kMinute), 0);
  Report(a, 0.1);  // the same again
  EXPECT_EQ(Later(kMinute), 0);
}

TEST_F(ResizingTest, ANewJobGetsItsMinimumFromTheOthers) {
  const JobId a = Add("a", 1, 8);
  Settle();
  Report(a, 0.01);
  Later(kMinute);
  EXPECT_EQ(Gpus(a), 8U);
  const JobId late = Add("late", 2, 2);
  Later(kMinute);
  EXPECT_EQ(Gpus(late), 2U);
  EXPECT_EQ(Gpus(a), 4U);  // a whole node rather than scattered GPUs
}

TEST_F(ResizingTest, WithoutAReportNothingIsResized) {
  const JobId a = Add("a", 1, 8), b = Add("b", 1, 8);
  Settle();
  EXPECT_EQ(Gpus(a), 4U);
  EXPECT_EQ(Gpus(b), 4U);
  EXPECT_EQ(cluster_->job(a).target, kNone);
}

TEST_F(ResizingTest, ThePolicyMaySwitchItOff) {
  Policy policy;
  policy.by_goodput = false;
  Make(policy);
  const JobId a = Add("a", 1, 8), b = Add("b", 1, 8);
  Settle();
  Report(a, 0.01);
  Report(b, 100);
  EXPECT_EQ(Later(kMinute), 0);
  EXPECT_EQ(Gpus(b), 4U);
}

TEST_F(ResizingTest, AQueueStaysWithinItsShare) {
  const JobId mine = Add("mine", 1, 8), theirs = Add("theirs", 1, 8, "other");
  Settle();
  Report(mine, 0.01);
  Later(kMinute);
  EXPECT_EQ(Gpus(mine), 4U);
  EXPECT_EQ(Gpus(theirs), 4U);
}

TEST_F(ResizingTest, WhatIsAboveTheShareIsTakenBackByTheRulesForThat) {
  const JobId mine = Add("mine", 1, 8);
  Settle();
  Report(mine, 0.01);
  Later(kMinute);
  EXPECT_EQ(Gpus(mine), 8U);
  rules_.clear();
  const JobId theirs = Add("theirs", 2, 2, "other");
  Later(kMinute);
  EXPECT_EQ(Gpus(theirs), 2U);
  EXPECT_EQ(rules_.front(), model::Rule::kShrink);
}

TEST_F(ResizingTest, WhenNobodyReportsAnyMoreJobsGrowAsTheyCan) {
  const JobId good = Add("good", 1, 8), silent = Add("silent", 1, 8);
  Settle();
  Report(good, 0.01);
  Later(kMinute);
  EXPECT_EQ(cluster_->job(silent).target, Gpus(silent));
  cluster_->RemoveJob(good);
  Later(kMinute);
  EXPECT_EQ(cluster_->job(silent).target, kNone);
  EXPECT_EQ(Gpus(silent), 8U);
}

TEST_F(ResizingTest, AJobThatRunsIsNotLeftWithLessThanItsMinimum) {
  Make({}, 3);
  const JobId odd = Add("odd", 3, 12), none = Add("none", 0, 4), pair = Add("pair", 2, 2);
  Settle();
  for (int minute = 0; minute < 20; ++minute) {
    Report(odd, minute % 2 == 0 ? 0.01 : 100);
    Report(pair, 0.01);
    Later(kMinute);
    EXPECT_GE(Gpus(odd), 3U);
    EXPECT_EQ(Gpus(pair), 2U);
  }
  EXPECT_LE(Gpus(odd) + Gpus(none) + Gpus(pair), 12U);
}

TEST_F(ResizingTest, JobsThatDoNotFitTogetherTakeTurns) {
  Make({}, 1);
  std::vector<JobId> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(Add("j" + std::to_string(i), 1, 1));
  Settle();
  for (int i = 0; i < 4; ++i) Report(jobs[static_cast<std::size_t>(i)], 0.01);
  EXPECT_EQ(Gpus(jobs[4]), 0U);
  Later(kMinute);
  EXPECT_EQ(Gpus(jobs[4]), 0U);  // nobody was served an hour more yet
  for (int hours = 0; hours < 2; ++hours) {
    Report(jobs[0], 0.01);
    Later(60 * kMinute);
  }
  EXPECT_EQ(Gpus(jobs[4]), 1U);
  EXPECT_EQ(Gpus(jobs[5]), 1U);
}

}  // namespace
}  // namespace muster::engine

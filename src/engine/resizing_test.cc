#include "engine/resizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "base/units.h"
#include "engine/cycle.h"

namespace muster::engine {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kMinute = 60'000;

class ResizingTest : public testing::Test {
 protected:
  void SetUp() override { Make({}); }

  void Make(const Policy& policy, int nodes = 2) {
    engine::Setup setup;
    setup.topologies.push_back({"cluster", {"rack"}});
    setup.queues.emplace_back().name = "q";
    setup.queues.emplace_back().name = "other";
    setup.policy = policy;
    cluster_ = std::move(*Cluster::Make(std::move(setup)));
    scheduler_ = std::make_unique<Scheduler>(*cluster_);
    for (int i = 0; i < nodes; ++i) AddNode("n" + std::to_string(i), 4, "");
    now_ms_ = 0;
  }

  void AddNode(const std::string& name, int gpus, const std::string& type,
               const std::string& rack = "r") {
    model::Node node;
    node.name = name;
    node.gpus.resize(static_cast<std::size_t>(gpus));
    for (auto& gpu : node.gpus) gpu.type = type;
    node.labels["rack"] = rack;
    EXPECT_TRUE(cluster_->AddNode(node).has_value());
  }

  static model::Job Wanted(const std::string& name, int minimum, int maximum,
                           const std::string& queue = "q") {
    model::Job job;
    job.name = name;
    job.queue = queue;
    job.groups.emplace_back().minimum = minimum;
    auto& role = job.roles.emplace_back();
    role.count = maximum;
    role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    return job;
  }
  JobId Add(const model::Job& job) { return *cluster_->AddJob(job, now_ms_); }
  JobId Add(const std::string& name, int minimum, int maximum, const std::string& queue = "q") {
    return Add(Wanted(name, minimum, maximum, queue));
  }

  // Puts its first workers on that node, on the lowest GPUs that nobody has.
  void Run(JobId job, const std::string& name, int workers) {
    const auto node = cluster_->FindNode(name);
    const Bank& bank = cluster_->nodes().bank(cluster_->nodes().node(node).first_bank);
    const auto first = static_cast<std::uint32_t>(Gpus(job));
    for (std::uint32_t i = first; i < first + static_cast<std::uint32_t>(workers); ++i) {
      const auto open = bank.unoccupied[static_cast<std::size_t>(Mode::kFree)];
      ASSERT_TRUE(cluster_->ReportWorker({job, i}, WorkerState::kRunning, node, open & (~open + 1),
                                         now_ms_));
    }
  }

  // A job whose step costs `sync_s` more on several GPUs, where one alone takes a second.
  static GoodputModel Model(double sync_s, double faster = 1) {
    GoodputModel model;
    model.steps.compute_b = 1.0 / 32 / faster;
    model.steps.within_a = model.steps.across_a = sync_s / faster;
    model.grad_sqr = 1;
    model.grad_var = 1e6;  // every sample is worth it
    model.limits = {32, 32 * 64, 32, 32};
    return model;
  }
  void Report(JobId job, const JobSpeed::Models& models) {
    const auto& state = cluster_->job(job);
    const auto& gpu = cluster_->shapes()[state.workers[0].shape].spec.request.gpu;
    const auto most = static_cast<int>(state.workers.size()) * gpu.devices;
    cluster_->ReportSpeed(job, JobSpeed(models, most));
  }
  void Report(JobId job, double sync_s) { Report(job, {{"", Model(sync_s)}}); }

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
        causes_.insert(action.cause);
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
  // The GPU types that it holds.
  std::set<std::string> Types(JobId job) const {
    std::set<std::string> out;
    for (const auto& worker : cluster_->job(job).workers) {
      const auto& nodes = cluster_->nodes();
      if (worker.place.Holds()) out.insert(nodes.type_name(nodes.bank(worker.place.bank).type));
    }
    return out;
  }
  std::set<std::string> Racks(JobId job) const {
    std::set<std::string> out;
    for (const auto& worker : cluster_->job(job).workers) {
      const auto& nodes = cluster_->nodes();
      if (!worker.place.Holds()) continue;
      out.insert(nodes.spec(nodes.bank(worker.place.bank).node).labels.at("rack"));
    }
    return out;
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Scheduler> scheduler_;
  std::int64_t now_ms_ = 0;
  std::vector<model::Rule> rules_;
  std::set<JobId> causes_;  // for whom others left
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

TEST_F(ResizingTest, WhereChangesAreFreeSizesAreStillThoseThatPay) {
  Policy policy;
  policy.resize_pays_ms = policy.resize_patience_milli = policy.resize_cost_ms = 0;
  Make(policy);
  const JobId good = Add("good", 1, 8), bad = Add("bad", 1, 8);
  Settle();
  Report(good, 0.01);
  Report(bad, 100);
  Later(kMinute);
  EXPECT_EQ(Gpus(good), 4U);
  EXPECT_EQ(Gpus(bad), 1U);
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
  causes_.clear();
  const JobId late = Add("late", 2, 2);
  Later(kMinute);
  EXPECT_EQ(Gpus(late), 2U);
  EXPECT_EQ(Gpus(a), 4U);  // a whole node rather than scattered GPUs
  EXPECT_THAT(causes_, ElementsAre(late));
}

TEST_F(ResizingTest, AJobLeavesForOneOfThoseWhoTakeItsPlaces) {
  const JobId a = Add("a", 1, 8);
  Settle();
  Report(a, 0.01);
  Later(kMinute);
  causes_.clear();
  const JobId small = Add("small", 1, 1), large = Add("large", 3, 3);
  Later(kMinute);
  EXPECT_EQ(Gpus(small), 1U);
  EXPECT_EQ(Gpus(large), 3U);
  EXPECT_EQ(Gpus(a), 4U);
  EXPECT_THAT(causes_, ElementsAre(large));
}

TEST_F(ResizingTest, RoomThatIsKeptForAGangIsNotGivenOut) {
  Make({}, 3);
  const JobId grows = Add("grows", 1, 12), ends = Add("ends", 4, 4);
  Run(grows, "n0", 4);
  Run(ends, "n1", 4);
  cluster_->SetExpected(ends, 30 * kMinute);
  auto wanted = Wanted("gang", 8, 8);
  wanted.nodes["rack"] = "r";  // so it is not one of those whose sizes are found with the others
  const JobId gang = Add(wanted);
  Settle();
  Report(grows, 0.01);
  for (int minute = 0; minute < 5; ++minute) {
    Later(kMinute);
    Report(grows, 0.01 + minute * 0.001);
    EXPECT_EQ(Gpus(grows), 4U);
  }
  cluster_->RemoveJob(ends);
  Later(0);
  EXPECT_EQ(Gpus(gang), 8U);
}

// Nobody else waits or wants more, so nothing was reserved before. One fits then, the other does
// not.
TEST_F(ResizingTest, WhatComesFreeInThatCycleIsKeptForAGangToo) {
  for (const auto& [workers, anew] : {std::pair(8, false), {8, true}, {4, false}, {4, true}}) {
    Make({});
    const JobId grows = Add("grows", 1, 8), ends = Add("ends", 4, 4);
    Run(grows, "n0", 4);
    Run(ends, "n1", 4);
    cluster_->SetExpected(grows, 60 * kMinute);
    cluster_->SetExpected(ends, 30 * kMinute);
    Report(grows, 0.01);
    Later(kMinute);
    auto wanted = Wanted("gang", workers, workers);
    wanted.nodes["rack"] = "r";
    const JobId gang = Add(wanted);
    Later(kMinute);
    if (anew) scheduler_ = std::make_unique<Scheduler>(*cluster_);
    cluster_->RemoveJob(ends);
    Later(kMinute);
    EXPECT_EQ(Gpus(grows), 4U) << workers << anew;
    EXPECT_EQ(Gpus(gang), workers == 4 ? 4U : 0U) << anew;
    cluster_->RemoveJob(gang);
    Later(kMinute);
    EXPECT_EQ(Gpus(grows), 8U) << workers << anew;
  }
}

TEST_F(ResizingTest, NobodyShrinksForAGangThatDoesNotFitYet) {
  Make({}, 4);
  const JobId grows = Add("grows", 1, 16), ends = Add("ends", 4, 4, "other");
  Run(grows, "n0", 4);
  Run(ends, "n1", 4);
  cluster_->SetExpected(ends, 30 * kMinute);
  const JobId gang = Add("gang", 15, 15);
  Report(grows, 0.01);
  for (int minute = 0; minute < 3; ++minute) {
    Later(kMinute);
    EXPECT_EQ(Gpus(grows), 4U);
    Report(grows, 0.01 + minute * 0.001);
  }
  cluster_->RemoveJob(ends);
  Later(kMinute);
  EXPECT_EQ(Gpus(gang), 15U);
  EXPECT_EQ(Gpus(grows), 1U);
}

// The gang is one of those whose sizes are given out, but not all of its rack is theirs.
TEST_F(ResizingTest, AGangThatHasNoSizeKeepsItsReservation) {
  Make({}, 3);
  AddNode("apart", 4, "", "s");
  const JobId grows = Add("grows", 1, 16), ends = Add("ends", 4, 4, "other");
  Run(grows, "apart", 4);
  Run(ends, "n0", 4);
  cluster_->SetExpected(ends, 30 * kMinute);
  auto wanted = Wanted("gang", 12, 12);
  wanted.groups[0].topology = {"cluster", "rack", ""};
  const JobId gang = Add(wanted);
  Report(grows, 0.01);
  for (int minute = 0; minute < 3; ++minute) {
    Later(kMinute);
    EXPECT_EQ(Gpus(grows), 4U);
    Report(grows, 0.01 + minute * 0.001);
  }
  cluster_->RemoveJob(ends);
  Later(kMinute);
  EXPECT_EQ(Gpus(gang), 12U);
}

TEST_F(ResizingTest, WhatAnAdminHasReservedIsNotGivenOut) {
  const JobId grows = Add("grows", 1, 8);
  cluster_->SetReservations({{"maintenance", "other", 2 * kMinute, 10 * kMinute, {{"n1", 4}}, ""}});
  Settle();
  for (now_ms_ = 0; now_ms_ < 9 * kMinute;) {
    if (now_ms_ < 8 * kMinute) Report(grows, 0.01 + static_cast<double>(now_ms_) * 1e-9);
    Later(kMinute);
    EXPECT_EQ(Gpus(grows), 4U) << now_ms_;
  }
  Later(2 * kMinute);
  EXPECT_EQ(Gpus(grows), 8U);
}

TEST_F(ResizingTest, JobsOfOtherNodesAreDividedApart) {
  AddNode("apart", 8, "", "s");
  const auto at = [&](const std::string& name, const std::string& rack) {
    auto wanted = Wanted(name, 1, 8);
    wanted.nodes["rack"] = rack;
    return Add(wanted);
  };
  const JobId good = at("good", "r"), bad = at("bad", "r"), there = at("there", "s");
  Settle();
  Report(good, 0.01);
  Report(bad, 100);
  Report(there, 0.01);
  Later(kMinute);
  Report(good, 0.011);
  Later(kMinute);
  EXPECT_EQ(Gpus(good), 4U);
  EXPECT_EQ(Gpus(bad), 1U);
  EXPECT_EQ(Gpus(there), 8U);
  EXPECT_EQ(Racks(good), std::set<std::string>{"r"});
}

TEST_F(ResizingTest, WhoMayUseFewNodesComesBeforeWhoMayUseAll) {
  AddNode("apart", 8, "", "s");
  auto wanted = Wanted("here", 1, 8);
  wanted.nodes["rack"] = "s";
  const JobId here = Add(wanted), anywhere = Add("anywhere", 1, 12);
  const JobId stays = Add("stays", 4, 4), ends = Add("ends", 7, 7);
  Run(here, "apart", 1);
  Run(anywhere, "n0", 4);
  Run(stays, "n1", 4);
  Run(ends, "apart", 7);
  Report(here, 0.01);
  Report(anywhere, 0.01);
  Later(kMinute);
  EXPECT_EQ(Gpus(here), 1U);
  cluster_->RemoveJob(ends);
  Later(kMinute);
  EXPECT_EQ(Gpus(here), 8U);
  EXPECT_EQ(Gpus(anywhere), 4U);
}

// Three GPUs for two jobs that scale equally well.
TEST_F(ResizingTest, WhoHasHadLittleGetsTheGreaterPart) {
  for (const bool counts : {false, true}) {
    Policy policy;
    if (!counts) policy.young_gpu_ms = 0;
    policy.resize_cost_ms = 0;
    Make(policy, 0);
    AddNode("n", 3, "");
    const JobId old = Add("old", 1, 2);
    Settle();
    Report(old, 0.1);
    Later(180 * kMinute);
    const JobId young = Add("young", 1, 2);
    Later(kMinute);
    Report(young, 0.1);
    Later(kMinute);
    EXPECT_EQ(Gpus(old), counts ? 1U : 2U);
    EXPECT_EQ(Gpus(young), counts ? 2U : 1U);
  }
}

TEST_F(ResizingTest, WhoDoesNotGetOnWithItsLeastGetsWhatItNeeds) {
  Policy policy;
  policy.resize_cost_ms = 0;
  Make(policy, 1);
  auto model = Model(0.01);
  model.limits = {48, 50, 32, 32};  // not on one GPU
  ASSERT_EQ(model.Best(1, 1).goodput, 0);
  ASSERT_GT(model.Best(1, 2).goodput, 0);
  const JobId even = Add("even", 1, 2);
  Settle();
  Report(even, {{"", model}});
  Later(120 * kMinute);
  const JobId good = Add("good", 1, 4), other = Add("other", 1, 4);
  Later(kMinute);
  Report(good, 0.01);  // they count for more
  Report(other, 0.01);
  Later(kMinute);
  EXPECT_EQ(Gpus(even), 2U);
  EXPECT_EQ(Gpus(good), 1U);
  EXPECT_EQ(Gpus(other), 1U);
}

TEST_F(ResizingTest, NobodyGetsMoreThanItsLargestBatchCanBeDividedAmong) {
  for (const int most_batch : {64, 128}) {
    Make({}, 1);
    const JobId job = Add("job", 1, 8);
    Settle();
    auto model = Model(0.01);
    model.limits = {32, most_batch, 16, 64};
    Report(job, {{"", model}});
    AddNode("n1", 4, "");
    Later(kMinute);
    EXPECT_EQ(Gpus(job), static_cast<std::uint32_t>(most_batch / 16));
  }
}

// Those who are left out of the weighing, because they could not run there anyway, change nothing.
TEST_F(ResizingTest, HoweverManyWaitThoseRunWhoAreFirst) {
  const JobId speaks = Add("speaks", 1, 8);
  Settle();
  Report(speaks, 0.01);
  std::vector<JobId> waiting;
  for (int i = 0; i < 400; ++i) {
    auto job = Wanted("w" + std::to_string(i), 1, 4);
    if (i >= 394) job.priority = 75;
    waiting.push_back(Add(job));
  }
  Later(kMinute);
  std::uint32_t first = 0, others = 0;
  for (std::size_t i = 0; i < waiting.size(); ++i) (i >= 394 ? first : others) += Gpus(waiting[i]);
  EXPECT_EQ(first, 6U);
  EXPECT_EQ(Gpus(speaks) + first + others, 8U);
}

// A gain so small that half a minute of work is not worth it yet, but a moment is.
TEST_F(ResizingTest, WhatAChangeCostsIsWhatTheWorkersMeasured) {
  for (const std::int64_t measured_ms : {-1, 100, 30'000}) {
    Make({}, 1);
    const JobId job = Add("job", 1, 2);
    Run(job, "n0", 1);
    cluster_->ReportResizeCost(job, measured_ms);
    auto model = Model(0.6);
    model.limits = {32, 64, 32, 32};  // two GPUs are 1.25 times as fast
    Report(job, {{"", model}});
    Later(kMinute);
    EXPECT_EQ(Gpus(job), measured_ms == 100 ? 2U : 1U) << measured_ms;
  }
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

// Four GPUs each of two types.
class TypesTest : public ResizingTest {
 protected:
  void SetUp() override { Make({}, 0); }
  void MakeTypes(const Policy& policy = {}) {
    Make(policy, 0);
    AddNode("a", 4, "A");
    AddNode("b", 4, "B");
  }
};

TEST_F(TypesTest, EachJobEndsOnTheTypeThatItIsFasterOn) {
  MakeTypes();
  const JobId picky = Add("picky", 1, 4), easy = Add("easy", 1, 4);
  Run(picky, "a", 4);
  Run(easy, "b", 4);
  Report(picky, {{"A", Model(0.01)}, {"B", Model(0.01, 3)}});
  Report(easy, {{"A", Model(0.01)}, {"B", Model(0.01)}});
  Later(10 * kMinute);
  EXPECT_THAT(Types(picky), ElementsAre("B"));
  EXPECT_THAT(Types(easy), ElementsAre("A"));
  EXPECT_EQ(Gpus(picky) + Gpus(easy), 8U);
  for (int again = 0; again < 5; ++again) {
    Report(picky, {{"A", Model(0.01)}, {"B", Model(0.01, 3)}});
    EXPECT_EQ(Later(kMinute), 0);
  }
}

TEST_F(TypesTest, AMoveThatDoesNotPayIsNotMade) {
  MakeTypes();
  const JobId job = Add("job", 1, 4);
  Run(job, "a", 4);
  Report(job, {{"A", Model(0.01)}, {"B", Model(0.01, 1.1)}});  // the restart costs half a minute
  EXPECT_EQ(Later(kMinute), 0);
  Report(job, {{"A", Model(0.01)}, {"B", Model(0.01, 3)}});
  EXPECT_GT(Later(kMinute), 0);
  EXPECT_THAT(Types(job), ElementsAre("B"));
}

TEST_F(TypesTest, OnlyAllowedTypesAreUsed) {
  MakeTypes();
  auto wanted = Wanted("job", 1, 8);
  wanted.roles[0].gpu_types = {"A"};
  const JobId job = Add(wanted);
  Run(job, "a", 4);
  Report(job, {{"A", Model(0.01)}, {"B", Model(0.01, 9)}});
  Later(kMinute);
  EXPECT_THAT(Types(job), ElementsAre("A"));
  EXPECT_EQ(Gpus(job), 4U);
}

TEST_F(TypesTest, OfEqualTypesTheOneThatItLikesBetterIsTaken) {
  MakeTypes();
  const JobId told = Add("told", 1, 1);
  Run(told, "a", 1);
  Report(told, 0.01);
  auto wanted = Wanted("late", 2, 2);
  wanted.roles[0].gpu_types = {"B", "A"};
  const JobId late = Add(wanted);
  Later(kMinute);
  EXPECT_THAT(Types(late), ElementsAre("B"));
}

// One job ran on both, so that it is known what the other type would do for the second.
TEST_F(TypesTest, WhatOneJobGainedIsExpectedOfAnother) {
  for (const bool known : {false, true}) {
    MakeTypes();
    const JobId told = Add("told", 1, 1), other = Add("other", 1, 2);
    Run(told, "b", 1);
    Run(other, "a", 2);
    if (known) {
      Report(told, {{"A", Model(0.01)}, {"B", Model(0.01, 4)}});
    } else {
      Report(told, {{"B", Model(0.01, 4)}});
    }
    Report(other, {{"A", Model(0.01)}});
    Later(kMinute);
    EXPECT_THAT(Types(other), ElementsAre(known ? "B" : "A"));
  }
}

TEST_F(TypesTest, AJobThatLiesOnTwoTypesIsBroughtTogether) {
  MakeTypes();
  const JobId job = Add("job", 2, 4);
  Run(job, "a", 2);
  Run(job, "b", 2);
  Report(job, {{"A", Model(0.01)}, {"B", Model(0.01)}});
  Later(10 * kMinute);
  EXPECT_EQ(Types(job).size(), 1U);
  EXPECT_EQ(Gpus(job), 4U);
}

TEST_F(TypesTest, ALimitOfATypeHolds) {
  engine::Setup setup;
  auto& queue = setup.queues.emplace_back();
  queue.name = "q";
  queue.limit["B"] = 2 * kMilli;
  cluster_ = std::move(*Cluster::Make(std::move(setup)));
  scheduler_ = std::make_unique<Scheduler>(*cluster_);
  now_ms_ = 0;
  for (const auto* type : {"A", "B"}) {
    model::Node node;
    node.name = type;
    node.gpus.resize(4);
    for (auto& gpu : node.gpus) gpu.type = type;
    ASSERT_TRUE(cluster_->AddNode(node).has_value());
  }
  const JobId one = Add("one", 1, 4), two = Add("two", 1, 4);
  Run(one, "A", 4);
  Report(one, {{"A", Model(0.01)}, {"B", Model(0.01, 3)}});
  Report(two, {{"A", Model(0.01)}, {"B", Model(0.01, 3)}});
  for (int minute = 0; minute < 5; ++minute) {
    Report(one, {{"A", Model(0.01)}, {"B", Model(0.01, 3)}});
    Later(kMinute);
    const auto held = cluster_->queues()[1].held[cluster_->TypeDim(1)];
    EXPECT_LE(held, 2 * kMilli);
  }
  EXPECT_EQ(Types(one).size(), 1U);
  EXPECT_EQ(Gpus(one) + Gpus(two), 6U);
}

TEST_F(ResizingTest, WorkersWithSeveralGpusAreSizedToo) {
  auto wanted = Wanted("good", 1, 4);
  wanted.roles[0].request.gpu.devices = 2;
  const JobId good = Add(wanted);
  wanted.name = "bad";
  const JobId bad = Add(wanted);
  Settle();
  EXPECT_EQ(Gpus(good) + Gpus(bad), 4U);
  Report(good, 0.01);
  auto costly = Model(0.01);
  costly.steps.within_b = costly.steps.across_b = 100;  // for each GPU beyond two
  Report(bad, {{"", costly}});
  Later(kMinute);
  EXPECT_EQ(Gpus(good), 2U);  // a whole node
  EXPECT_EQ(Gpus(bad), 1U);
  cluster_->RemoveJob(bad);
  Later(kMinute);
  EXPECT_EQ(Gpus(good), 4U);
  for (const auto& worker : cluster_->job(good).workers) {
    EXPECT_EQ(std::popcount(worker.place.devices), 2);
  }
}

TEST_F(ResizingTest, ThreeGpusOfFourAreAWholeNodeToSome) {
  auto wanted = Wanted("odd", 1, 2);
  wanted.roles[0].request.gpu.devices = 3;
  const JobId odd = Add(wanted), small = Add("small", 1, 2);
  Settle();
  Report(odd, 0.01);
  Report(small, 0.01);
  Later(kMinute);
  EXPECT_EQ(Gpus(odd), 2U);
  EXPECT_GE(Gpus(small), 1U);
}

TEST_F(ResizingTest, AJobThatMustBeTogetherStaysTogether) {
  Make({}, 0);
  for (const auto* rack : {"x", "y"}) {
    for (const auto* node : {"0", "1"}) AddNode(std::string(rack) + node, 4, "", rack);
  }
  auto wanted = Wanted("near", 2, 16);
  wanted.groups[0].topology = {"", "rack", ""};
  const JobId near = Add(wanted), far = Add("far", 1, 16);
  Settle();
  for (int minute = 0; minute < 8; ++minute) {
    Report(near, minute % 3 == 0 ? 100 : 0.01);
    Report(far, minute % 3 == 1 ? 100 : 0.01);
    Later(10 * kMinute);
    EXPECT_GE(Gpus(near), 2U);
    EXPECT_EQ(Racks(near).size(), 1U);
  }
  Report(near, 0.01);
  Report(far, 100);
  Later(10 * kMinute);
  EXPECT_EQ(Gpus(near), 8U);  // all of its rack, which the other one left
  EXPECT_EQ(Racks(near).size(), 1U);
  EXPECT_EQ(Later(10 * kMinute), 0);
}

}  // namespace
}  // namespace muster::engine

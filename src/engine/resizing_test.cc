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

#include "engine/explain.h"

#include <gmock/gmock.h>

#include "base/units.h"
#include "engine/cycle.h"

namespace muster::engine {
namespace {

using model::Gate;
using testing::HasSubstr;
using testing::Not;
using Kind = Change::Kind;

constexpr std::int64_t kNowMs = 1'000'000;
constexpr std::int64_t kGi = 1LL << 30;

model::Queue MakeQueue(const std::string& name, std::int64_t quota, std::int64_t limit) {
  model::Queue queue;
  queue.name = name;
  queue.quota["gpus"] = quota;
  if (limit != kUnlimited) queue.limit["gpus"] = limit;
  return queue;
}

class ExplainTest : public testing::Test {
 protected:
  ExplainTest() {
    engine::Setup setup;
    setup.topologies = {{"network", {"rack"}}};
    setup.queues = {
        MakeQueue("open", kUnlimited, kUnlimited), MakeQueue("small", 0, 2 * kMilli),
        MakeQueue("tree", 0, 3 * kMilli),          MakeQueue("tree/leaf", 0, kUnlimited),
        MakeQueue("guest", 0, kUnlimited),         MakeQueue("fixed", 2 * kMilli, kUnlimited)};
    setup.queues[3].parent = "tree";
    setup.countables = {"fpga"};
    cluster_ = std::move(*Cluster::Make(std::move(setup)));
    scheduler_ = std::make_unique<Scheduler>(*cluster_);
  }

  NodeId AddNode(const std::string& name, std::size_t gpus = 4, const std::string& type = "H100",
                 const model::Labels& labels = {}) {
    model::Node node;
    node.name = name;
    node.gpus.resize(gpus);
    for (auto& gpu : node.gpus) {
      gpu.type = type;
      gpu.memory_bytes = 16 * kGi;
    }
    node.cpu_milli = 8 * kMilli;
    node.memory_bytes = 64 * kGi;
    node.labels = labels;
    return *cluster_->AddNode(node);
  }

  static model::Job MakeJob(int least, int most, int gpus, const std::string& queue = "open") {
    model::Job job;
    job.name = "x";
    job.queue = queue;
    job.groups.emplace_back().minimum = least;
    auto& role = job.roles.emplace_back();
    role.count = most;
    if (gpus > 0) role.request.gpu = {model::GpuKind::kWhole, gpus, 0, 0};
    return job;
  }

  Explanation Ask(const model::Job& job) {
    const JobId id = *cluster_->AddJob(job, kNowMs);
    scheduler_->Cycle(kNowMs);
    return Explain(*cluster_, id, kNowMs);
  }
  // What a job is told that can never run here.
  std::string Lacks(const model::Job& job) {
    const auto why = Ask(job);
    EXPECT_EQ(why.gate, Gate::kNeverFits);
    cluster_->RemoveJob(why.job);
    return why.shortage ? Describe(*cluster_, *why.shortage) : "";
  }
  std::string Say(const Explanation& why) const { return Sentence(*cluster_, why); }

  static std::vector<std::string> Changes(const Explanation& why) {
    std::vector<std::string> out;
    for (const auto& change : why.changes) out.push_back(Describe(change));
    return out;
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(ExplainTest, AnUnlimitedQuotaIsNotToBeRaised) {
  AddNode("n0");
  auto first = MakeJob(4, 4, 1);
  first.name = "first";
  Ask(first);
  const auto why = Ask(MakeJob(1, 1, 1));
  EXPECT_EQ(why.gate, Gate::kShare);
  EXPECT_EQ(why.quota, kUnlimited);
  for (const auto& change : Changes(why)) EXPECT_THAT(change, Not(HasSubstr("quota")));
}

TEST_F(ExplainTest, AQuotaIsToBeRaisedOnlyWhereThatWouldTakeFromOthers) {
  AddNode("n0");
  auto first = MakeJob(3, 3, 1, "guest");
  first.name = "first";
  const auto own = Ask(first);
  const auto alone = Ask(MakeJob(1, 1, 4, "guest"));
  EXPECT_EQ(alone.gate, Gate::kShare);
  for (const auto& change : Changes(alone)) EXPECT_THAT(change, Not(HasSubstr("quota")));
  cluster_->RemoveJob(alone.job);
  cluster_->RemoveJob(own.job);
  auto others = MakeJob(4, 4, 1);
  others.name = "others";
  Ask(others);
  EXPECT_THAT(Changes(Ask(MakeJob(1, 1, 2, "guest"))),
              testing::Contains(HasSubstr("raise the quota of guest by 2")));
}

TEST_F(ExplainTest, ACordonedNodeIsNamedWithWhatLetsItTakeTheJob) {
  const NodeId node = AddNode("n0");
  for (const bool draining : {false, true}) {
    cluster_->SetNodeCordoned(node, true, draining);
    const auto why = Ask(MakeJob(1, 1, 1));
    EXPECT_EQ(why.gate, Gate::kCapacity);
    EXPECT_EQ(why.nodes[static_cast<std::size_t>(Filter::kCordoned)], 1);
    EXPECT_EQ(why.nodes[static_cast<std::size_t>(Filter::kDown)], 0);
    EXPECT_EQ(why.fit_ever, 4);
    EXPECT_EQ(Say(why), std::string("node n0 is ") + (draining ? "draining" : "cordoned") +
                            ", and no other node can take it");
    EXPECT_THAT(Changes(why), testing::ElementsAre("run `muster node uncordon n0`"));
    cluster_->RemoveJob(why.job);
  }
  cluster_->SetNodeCordoned(node, false, false);
  const JobId id = *cluster_->AddJob(MakeJob(1, 1, 1), kNowMs);
  EXPECT_FALSE(scheduler_->Cycle(kNowMs).empty()) << "the advice is true";
  EXPECT_TRUE(cluster_->job(id).Satisfied());
}

TEST_F(ExplainTest, SeveralCordonedNodesAreNamedWhereOneIsNotEnough) {
  AddNode("a");
  cluster_->SetNodeCordoned(AddNode("b"), true, false);
  cluster_->SetNodeCordoned(AddNode("c"), true, false);
  cluster_->SetNodeCordoned(AddNode("cpu", 0), true, false);
  const auto why = Ask(MakeJob(3, 3, 4));
  EXPECT_EQ(Say(why), "nodes b and c are cordoned, and the others could take 1 of 3 workers");
  EXPECT_THAT(Changes(why), testing::Contains("uncordon the nodes b, c"));
}

TEST_F(ExplainTest, OnlyACordonedNodeOfTheRightRackHelps) {
  AddNode("a", 4, "H100", {{"rack", "1"}});
  cluster_->SetNodeCordoned(AddNode("b", 4, "H100", {{"rack", "2"}}), true, false);
  cluster_->SetNodeCordoned(AddNode("c", 4, "H100", {{"rack", "1"}}), true, false);
  auto job = MakeJob(2, 2, 4);
  job.groups[0].topology.require = "rack";
  EXPECT_THAT(Changes(Ask(job)), testing::Contains("run `muster node uncordon c`"));
}

TEST_F(ExplainTest, ANodeThatIsDownIsNoReasonToSayNever) {
  const NodeId node = AddNode("n0");
  cluster_->SetNodeUp(node, false);
  const auto why = Ask(MakeJob(1, 1, 1));
  EXPECT_EQ(why.gate, Gate::kCapacity);
  EXPECT_THAT(Say(why), HasSubstr("node n0 is down"));
  EXPECT_THAT(Changes(why), testing::IsEmpty());
}

TEST_F(ExplainTest, WhatCanNeverRunIsToldWithBothNumbers) {
  AddNode("n0");
  EXPECT_EQ(Lacks(MakeJob(1, 1, 8)), "8 GPUs on one node are asked for; the largest node has 4");
  EXPECT_EQ(Lacks(MakeJob(8, 8, 1)),
            "8 workers with 1 GPU each are asked for at once; all nodes together have room for 4");
  auto job = MakeJob(1, 1, 1);
  job.roles[0].request.cpu_milli = 64 * kMilli;
  EXPECT_EQ(Lacks(job), "64 cores on one node are asked for; the largest node has 8 cores");
  job = MakeJob(1, 1, 1);
  job.roles[0].request.memory_bytes = 1024 * kGi;
  EXPECT_EQ(Lacks(job),
            "1Ti of memory on one node are asked for; the largest node has 64Gi of memory");
  job = MakeJob(1, 1, 1);
  job.roles[0].request.other["fpga"] = 2;
  EXPECT_EQ(Lacks(job), "2 fpga on one node are asked for; the largest node has 0 fpga");
  job = MakeJob(1, 1, 0);
  job.roles[0].request.gpu = {model::GpuKind::kMemory, 1, 0, 40 * kGi};
  EXPECT_EQ(Lacks(job), "40Gi of one GPU are asked for; the largest GPU has 16Gi");
}

TEST_F(ExplainTest, ATypeOrPlaceThatIsNotThereIsNamedWithThoseThatAre) {
  AddNode("n0", 4, "H100", {{"zone", "a"}});
  AddNode("n1", 8, "A100", {{"zone", "b"}, {"disk", "fast"}});
  auto job = MakeJob(1, 1, 1);
  job.roles[0].gpu_types = {"B200"};
  EXPECT_EQ(Lacks(job), "a GPU of type B200 is asked for; there are A100 and H100");
  job.nodes = {{"zone", "a"}};
  EXPECT_EQ(Lacks(job), "a GPU of type B200 is asked for; there is only H100 where it may run");
  job = MakeJob(1, 1, 1);
  job.nodes = {{"zone", "c"}};
  EXPECT_EQ(Lacks(job), "no node has the label zone=c");
  job.nodes = {{"zone", "a"}, {"disk", "fast"}};
  EXPECT_EQ(Lacks(job), "no node has all the labels disk=fast and zone=a");
  job.nodes.clear();
  job.roles[0].node_names = {"n7"};
  EXPECT_EQ(Lacks(job), "no node is called n7");
  job = MakeJob(1, 1, 8);
  job.roles[0].gpu_types = {"H100"};
  EXPECT_EQ(Lacks(job), "8 GPUs of type H100 on one node are asked for; the largest node has 4");
  job = MakeJob(1, 1, 8);
  job.nodes = {{"zone", "a"}};
  EXPECT_EQ(Lacks(job), "8 GPUs on one node are asked for; the largest node that it may use has 4");
}

TEST_F(ExplainTest, WhatNoNodeHasTogetherIsToldAsSuch) {
  AddNode("gpu", 4);
  model::Node cpu;
  cpu.name = "cpu";
  cpu.cpu_milli = 64 * kMilli;
  ASSERT_TRUE(cluster_->AddNode(cpu));
  auto job = MakeJob(1, 1, 2);
  job.roles[0].request.cpu_milli = 32 * kMilli;
  EXPECT_EQ(Lacks(job), "2 GPUs and 32 cores are asked for on one node; no node has all of that");
}

TEST_F(ExplainTest, AGangThatFitsInNoRackIsToldSo) {
  AddNode("a", 4, "H100", {{"rack", "1"}});
  AddNode("b", 4, "H100", {{"rack", "2"}});
  auto job = MakeJob(2, 2, 4);
  job.groups[0].topology.require = "rack";
  EXPECT_EQ(Lacks(job),
            "2 workers with 4 GPUs each are asked for at once within one rack; "
            "the largest has room for 1");
}

TEST_F(ExplainTest, MoreThanALimitCanEverAllowIsToldFromWhatIsOnlyUsedUp) {
  AddNode("n0");
  auto why = Ask(MakeJob(3, 3, 1, "small"));
  EXPECT_TRUE(why.beyond);
  EXPECT_EQ(Say(why), "3 GPUs are asked for at once; queue small has a limit of 2 GPUs");
  cluster_->RemoveJob(why.job);
  why = Ask(MakeJob(4, 4, 1, "tree/leaf"));
  EXPECT_TRUE(why.beyond) << "the limit of a queue above";
  EXPECT_THAT(Say(why), HasSubstr("queue tree has a limit of 3 GPUs"));
  cluster_->RemoveJob(why.job);
  auto first = MakeJob(2, 2, 1, "small");
  first.name = "first";
  Ask(first);
  why = Ask(MakeJob(1, 1, 1, "small"));
  EXPECT_EQ(why.gate, Gate::kLimit);
  EXPECT_FALSE(why.beyond);
}

TEST_F(ExplainTest, FixedWorkBeyondAWholeQuotaIsToldFromWhatIsOnlyUsedUp) {
  AddNode("n0");
  auto job = MakeJob(3, 3, 1, "fixed");
  job.preemptible = false;
  auto why = Ask(job);
  EXPECT_EQ(why.gate, Gate::kFixedQuota);
  EXPECT_TRUE(why.beyond);
  EXPECT_EQ(Say(why),
            "it is not preemptible, and 3 GPUs are asked for at once; queue fixed has a quota for "
            "such work of 2 GPUs");
}

TEST_F(ExplainTest, AShareByMemoryIsHeldToTheLimitByWhatItCostsAtLeast) {
  AddNode("n0");
  model::Node large;
  large.name = "large";
  large.gpus.resize(4);
  for (auto& gpu : large.gpus) gpu.memory_bytes = 64 * kGi;
  ASSERT_TRUE(cluster_->AddNode(large));
  auto job = MakeJob(3, 3, 0, "small");
  job.roles[0].request.gpu = {model::GpuKind::kMemory, 1, 0, 12 * kGi};
  const auto why = Ask(job);
  EXPECT_FALSE(why.beyond) << "three times 0.75 of a small GPU, but 0.19 of a large one";
}

TEST_F(ExplainTest, AJobThatRunsIsToldWhyItHasNoMoreWorkers) {
  AddNode("n0");
  const auto why = Ask(MakeJob(1, 3, 1, "small"));
  EXPECT_TRUE(cluster_->job(why.job).Satisfied());
  EXPECT_EQ(why.gate, Gate::kLimit);
  EXPECT_EQ(why.workers, 1);
  EXPECT_FALSE(why.beyond);
}

TEST_F(ExplainTest, TheGateAloneIsTheOneOfTheWholeExplanation) {
  AddNode("n0");
  auto first = MakeJob(2, 2, 1, "small");
  first.name = "first";
  Ask(first);
  const auto why = Ask(MakeJob(1, 1, 1, "small"));
  const auto gate = ExplainGate(*cluster_, why.job, kNowMs);
  EXPECT_EQ(gate.gate, why.gate);
  EXPECT_EQ(Brief(*cluster_, gate), "limit of queue small");
}

}  // namespace
}  // namespace muster::engine

#include "engine/cluster.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "engine/cycle.h"
#include "engine/explain.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kNowMs = 1'000'000;

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() {
    engine::Setup setup;
    for (const auto& [name, quota] :
         {std::pair{"a", 0}, std::pair{"b", 0}, std::pair{"owner", 8}}) {
      model::Queue queue;
      queue.name = name;
      queue.quota["gpus"] = quota * kMilli;
      setup.queues.push_back(queue);
    }
    cluster_ = std::move(*Cluster::Make(std::move(setup)));
    AddNode("n0");
  }

  NodeId AddNode(const std::string& name, std::int64_t gpu_memory = 1 << 20) {
    model::Node node;
    node.name = name;
    node.gpus.resize(4);
    for (auto& gpu : node.gpus) gpu.memory_bytes = gpu_memory;
    node.cpu_milli = 64 * kMilli;
    node.max_workers = 100;
    return *cluster_->AddNode(node);
  }

  JobId AddJob(const std::string& name, const std::string& queue, int workers, int gpus) {
    model::Job job;
    job.name = name;
    job.queue = queue;
    job.groups.emplace_back().minimum = workers;
    auto& role = job.roles.emplace_back();
    role.count = workers;
    role.request.gpu = {model::GpuKind::kWhole, gpus, 0, 0};
    return *cluster_->AddJob(job, kNowMs);
  }

  std::int64_t ShareOf(const std::string& queue) {
    cluster_->DivideShares();
    return cluster_->queues()[cluster_->queues().Find(queue)].share[kGpuDim];
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ClusterTest, AJobOnHoldAsksForNothing) {
  AddJob("x", "a", 4, 1);
  const JobId held = AddJob("y", "b", 4, 1);
  EXPECT_EQ(ShareOf("b"), 2 * kMilli);
  cluster_->SetHold(held, true);
  EXPECT_EQ(ShareOf("b"), 0);
  EXPECT_EQ(ShareOf("a"), 4 * kMilli);
  cluster_->SetHold(held, true);
  cluster_->SetHold(held, false);
  EXPECT_EQ(ShareOf("b"), 2 * kMilli);
}

TEST_F(ClusterTest, AShareOfMemoryIsPricedAnewWhenASmallerGpuJoins) {
  model::Job job;
  job.name = "x";
  job.queue = "a";
  job.groups.emplace_back().minimum = 1;
  auto& role = job.roles.emplace_back();
  role.count = 1;
  role.request.gpu = {model::GpuKind::kMemory, 1, 0, 1 << 18};
  ASSERT_TRUE(cluster_->AddJob(job, kNowMs).has_value());
  const QueueId queue = cluster_->queues().Find("a");
  EXPECT_EQ(cluster_->queues()[queue].request[kGpuDim], 250);
  AddNode("n1", 1 << 19);
  EXPECT_EQ(cluster_->queues()[queue].request[kGpuDim], 500);
}

TEST_F(ClusterTest, RefusesAWorkerOnGpusThatAreNotThere) {
  const JobId job = AddJob("x", "a", 1, 1);
  const auto wrong = cluster_->ReportWorker({job, 0}, WorkerState::kRunning, 0, 1ULL << 9, 0);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(cluster_->ReportWorker({job, 0}, WorkerState::kRunning, 7, 1, 0).has_value());
  EXPECT_TRUE(cluster_->ReportWorker({job, 0}, WorkerState::kRunning, 0, 1, 0).has_value());
}

TEST_F(ClusterTest, AJobIsNotConsideredBeforeTheFirstCycleThatSeesIt) {
  Scheduler scheduler(*cluster_);
  AddJob("first", "a", 4, 1);
  scheduler.Cycle(kNowMs);
  const JobId job = AddJob("x", "a", 4, 1);
  cluster_->DivideShares();
  EXPECT_EQ(Explain(*cluster_, job, kNowMs).gate, model::Gate::kNotConsidered);
  scheduler.Cycle(kNowMs);
  EXPECT_NE(Explain(*cluster_, job, kNowMs).gate, model::Gate::kNotConsidered);
}

TEST_F(ClusterTest, WorkersOfDifferentShapesAreExplainedApart) {
  model::Job job;
  job.name = "mixed";
  job.queue = "a";
  job.groups.emplace_back().minimum = 5;
  for (const auto& [count, gpus] : {std::pair{1, 4}, std::pair{4, 1}}) {
    auto& role = job.roles.emplace_back();
    role.name = "r" + std::to_string(gpus);
    role.count = count;
    role.request.gpu = {model::GpuKind::kWhole, gpus, 0, 0};
  }
  const JobId id = *cluster_->AddJob(job, kNowMs);
  Scheduler scheduler(*cluster_);
  scheduler.Cycle(kNowMs);
  const auto why = Explain(*cluster_, id, kNowMs);
  EXPECT_EQ(why.workers, 5);
  EXPECT_EQ(why.fit_now, 5) << "one of four GPUs, and four of one: each alone fits";
  EXPECT_NE(why.gate, model::Gate::kNeverFits);
  AddNode("n1");
  EXPECT_FALSE(scheduler.Cycle(kNowMs).actions.empty());
}

TEST_F(ClusterTest, ANodeThatComesBackReopensVerdicts) {
  const NodeId node = AddNode("n1");
  Scheduler scheduler(*cluster_);
  scheduler.Cycle(kNowMs);
  cluster_->SetNodeCordoned(node, true, false);
  const JobId lent = AddJob("lent", "b", 1, 4);
  ASSERT_TRUE(cluster_->ReportWorker({lent, 0}, WorkerState::kRunning, 0, 15, 0).has_value());
  AddJob("gang", "owner", 2, 4);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(scheduler.Cycle(kNowMs).empty()) << "one node is away";
  cluster_->SetNodeCordoned(node, false, false);
  const auto plan = scheduler.Cycle(kNowMs);
  ASSERT_EQ(plan.actions.size(), 1U);
  EXPECT_EQ(plan.actions[0].job, lent);
  EXPECT_EQ(plan.promises.size(), 2U);
}

}  // namespace
}  // namespace muster::engine

#include "engine/victims.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kNowMs = 1'000'000;

class VictimsTest : public testing::Test {
 protected:
  VictimsTest() {
    engine::Setup setup;
    setup.queues.emplace_back().name = "q";
    setup.queues.emplace_back().name = "other";
    cluster_ = std::move(*Cluster::Make(std::move(setup)));
    model::Node node;
    node.name = "n";
    node.gpus.resize(32);
    EXPECT_TRUE(cluster_->AddNode(node).has_value());
  }

  // A running job of `count` one-GPU workers.
  JobId Run(model::Job job, std::int64_t submitted_ms = 0, std::int64_t started_ms = 0) {
    const JobId id = *cluster_->AddJob(job, submitted_ms);
    for (std::uint32_t i = 0; i < cluster_->job(id).workers.size(); ++i) {
      const auto done = cluster_->ReportWorker({id, i}, WorkerState::kRunning, 0,
                                               1ULL << next_gpu_++, started_ms + i);
      EXPECT_TRUE(done.has_value());
    }
    return id;
  }

  static model::Job Spec(const std::string& name, std::int64_t priority, int minimum, int count) {
    model::Job job;
    job.name = name;
    job.queue = "q";
    job.priority = priority;
    job.groups.emplace_back().minimum = minimum;
    auto& role = job.roles.emplace_back();
    role.count = count;
    role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    return job;
  }

  // "a/1 a b": units in the order in which they are asked; a worker has its number.
  std::string Order(bool surplus_only = false) {
    const std::vector<QueueId> queues = {cluster_->queues().Find("q")};
    RunningUnits running(*cluster_);
    list_.Build(running, queues, kNowMs, surplus_only);
    std::string out;
    for (std::size_t i = 0; const VictimUnit* unit = list_.At(i); ++i) {
      out += (out.empty() ? "" : " ") + cluster_->job(unit->job).name;
      if (unit->part == VictimUnit::Part::kWorker) out += "/" + std::to_string(unit->index);
      if (unit->part == VictimUnit::Part::kGroup) out += ":" + std::to_string(unit->index);
    }
    return out;
  }

  std::unique_ptr<Cluster> cluster_;
  VictimList list_;
  int next_gpu_ = 0;
};

TEST_F(VictimsTest, AsksTheLowestPriorityFirst) {
  Run(Spec("high", 75, 1, 1));
  Run(Spec("low", 25, 1, 1));
  Run(Spec("mid", 50, 1, 1));
  EXPECT_EQ(Order(), "low mid high");
}

TEST_F(VictimsTest, AsksTheYoungestOfEquals) {
  Run(Spec("old", 50, 1, 1), 100);
  Run(Spec("young", 50, 1, 1), 300);
  Run(Spec("middle", 50, 1, 1), 200);
  EXPECT_EQ(Order(), "young middle old");
}

TEST_F(VictimsTest, AsksWorkersAboveTheMinimumBeforeAnyWholeJobOfThatPriority) {
  Run(Spec("young", 50, 1, 1), 300);
  Run(Spec("elastic", 50, 2, 4), 100);
  EXPECT_EQ(Order(), "elastic/3 elastic/2 young elastic");
  EXPECT_EQ(Order(true), "elastic/3 elastic/2");
}

TEST_F(VictimsTest, SparesWorkThatIsNotPreemptibleAndOtherQueues) {
  auto fixed = Spec("fixed", 10, 1, 1);
  fixed.preemptible = false;
  Run(fixed);
  auto build = Spec("build", 10, 1, 1);
  build.kind = model::JobKind::kBuild;
  Run(build);
  auto other = Spec("other", 10, 1, 1);
  other.queue = "other";
  Run(other);
  Run(Spec("a", 50, 1, 1));
  EXPECT_EQ(Order(), "a");
}

TEST_F(VictimsTest, OffersASpareGroupAsOnePiece) {
  auto job = Spec("groups", 50, 1, 2);
  job.groups.push_back({"g1", 0, 2, {}});
  job.groups.push_back({"g2", 0, 2, {}});
  job.roles[0].group = 1;
  job.roles.push_back(job.roles[0]);
  job.roles[1].group = 2;
  const JobId id = Run(job);
  EXPECT_EQ(Order(), "groups:2 groups");
  std::vector<WorkerRef> workers;
  VictimList::Workers(*cluster_, *list_.At(0), workers);
  EXPECT_EQ(workers, (std::vector<WorkerRef>{{id, 2}, {id, 3}}));
  VictimList::Workers(*cluster_, *list_.At(1), workers);
  EXPECT_EQ(workers.size(), 4U);
}

TEST_F(VictimsTest, LeastLostWorkDecidesFirstWhereItIsKnownOfBoth) {
  cluster_->ReportCheckpoint(Run(Spec("fresh", 75, 1, 1)), kNowMs - 1000);
  cluster_->ReportCheckpoint(Run(Spec("stale", 25, 1, 1)), kNowMs - 9000);
  EXPECT_EQ(Order(), "fresh stale");
}

TEST_F(VictimsTest, UnitsOfWhichNothingIsKnownKeepTheirPositions) {
  cluster_->ReportCheckpoint(Run(Spec("stale", 10, 1, 1)), kNowMs - 9000);
  Run(Spec("unknown", 20, 1, 1));
  cluster_->ReportCheckpoint(Run(Spec("fresh", 30, 1, 1)), kNowMs - 1000);
  EXPECT_EQ(Order(), "fresh unknown stale");
}

TEST_F(VictimsTest, LostWorkCountsGpusAndTheRestart) {
  auto spec = Spec("small", 50, 1, 1);
  spec.checkpoint.restart_cost_ms = 500;
  const JobId small = Run(spec);
  const JobId large = Run(Spec("large", 50, 4, 4));
  const auto lost = [&](JobId id, std::int64_t gpus) {
    return cluster_->LostWorkMs(cluster_->job(id), gpus * kMilli, kNowMs);
  };
  EXPECT_EQ(lost(small, 1), -1) << "nothing is known";
  cluster_->ReportCheckpoint(small, kNowMs - 2000);
  cluster_->ReportCheckpoint(large, kNowMs - 1000);
  EXPECT_EQ(lost(small, 1), 2500);
  EXPECT_EQ(lost(large, 4), 4000);
  EXPECT_EQ(Order(), "small large");
}

TEST_F(VictimsTest, KeptUnitsFollowEveryChange) {
  RunningUnits running(*cluster_);
  const QueueId queue = cluster_->queues().Find("q");
  EXPECT_TRUE(running.Of(queue, kNowMs).empty());
  const JobId id = Run(Spec("elastic", 50, 1, 2));
  EXPECT_EQ(running.Of(queue, kNowMs).size(), 2U);
  const auto mark = cluster_->mark();
  cluster_->Move({id, 1}, {});
  EXPECT_EQ(running.Of(queue, kNowMs).size(), 1U);
  cluster_->RollbackTo(mark);
  EXPECT_EQ(running.Of(queue, kNowMs).size(), 2U);
  EXPECT_EQ(running.Of(queue, kNowMs)[1].lost_gpu_ms, -1);
  cluster_->ReportCheckpoint(id, kNowMs - 1000);
  EXPECT_EQ(running.Of(queue, kNowMs)[1].lost_gpu_ms, 2000);
  EXPECT_EQ(running.Of(queue, kNowMs + 500)[1].lost_gpu_ms, 3000);
  cluster_->RemoveJob(id);
  EXPECT_TRUE(running.Of(queue, kNowMs).empty());
}

TEST_F(VictimsTest, TheLazyOrderIsTheWholeOrder) {
  for (int i = 0; i < 30; ++i) Run(Spec("j" + std::to_string(i), 10 + i * 7 % 5, 1, 1), i * 13 % 7);
  const std::vector<QueueId> queues = {cluster_->queues().Find("q")};
  RunningUnits running(*cluster_);
  list_.Build(running, queues, kNowMs, false);
  ASSERT_EQ(list_.size(), 30U);
  for (std::size_t i = 1; i < 30; ++i) EXPECT_TRUE(AskedBefore(*list_.At(i - 1), *list_.At(i)));
  EXPECT_EQ(list_.At(30), nullptr);
}

}  // namespace
}  // namespace muster::engine

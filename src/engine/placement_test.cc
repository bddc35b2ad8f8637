#include "engine/placement.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "base/units.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kMemory = 1000;

model::Node Machine(const std::string& name, const std::string& rack, int gpus,
                    const std::string& type = "A") {
  model::Node node;
  node.name = name;
  node.labels["rack"] = rack;
  model::Gpu gpu;
  gpu.type = type;
  gpu.memory_bytes = kMemory;
  for (int i = 0; i < gpus; ++i) {
    gpu.nvlink_island = i / 2;
    node.gpus.push_back(gpu);
  }
  node.cpu_milli = 64 * kMilli;
  return node;
}

model::Job Gang(const std::string& name, int minimum, int count, int gpus) {
  model::Job job;
  job.name = name;
  job.queue = "q";
  job.groups.emplace_back().minimum = minimum;
  auto& role = job.roles.emplace_back();
  role.name = "worker";
  role.count = count;
  role.request.gpu = {model::GpuKind::kWhole, gpus, 0, 0};
  return job;
}

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() {
    engine::Setup setup;
    setup.topologies = {{"fabric", {"rack"}}};
    setup.queues.emplace_back().name = "q";
    cluster_ = std::move(*Cluster::Make(std::move(setup)));
    placement_ = std::make_unique<Placement>(*cluster_);
  }

  void Add(const model::Node& node) { ASSERT_TRUE(cluster_->AddNode(node).has_value()); }
  JobId Add(const model::Job& job) { return *cluster_->AddJob(job, 0); }

  bool PlaceNext(JobId job, Mode mode = Mode::kFree) {
    std::vector<Piece> pieces;
    placement_->NextPieces(job, pieces);
    return !pieces.empty() && placement_->Place(pieces[0], mode);
  }

  std::string NodeOf(JobId job, std::uint32_t worker) const {
    const auto& place = cluster_->worker({job, worker}).place;
    return place.bank == kNone
               ? ""
               : cluster_->nodes().spec(cluster_->nodes().bank(place.bank).node).name;
  }
  std::uint64_t DevicesOf(JobId job, std::uint32_t worker) const {
    return cluster_->worker({job, worker}).place.devices;
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Placement> placement_;
};

TEST_F(PlacementTest, PutsAWorkerOnTheFullestNodeThatFits) {
  Add(Machine("a", "r0", 4));
  Add(Machine("b", "r0", 2));
  const JobId job = Add(Gang("j", 1, 1, 1));
  ASSERT_TRUE(PlaceNext(job));
  EXPECT_EQ(NodeOf(job, 0), "b");
}

TEST_F(PlacementTest, PlacesAGangWholeOrNotAtAll) {
  Add(Machine("a", "r0", 2));
  Add(Machine("b", "r0", 2));
  const auto before = cluster_->Dump();
  EXPECT_FALSE(PlaceNext(Add(Gang("five", 5, 5, 1)))) << "room for four";
  const JobId four = Add(Gang("four", 4, 4, 1));
  const auto waiting = cluster_->Dump();
  EXPECT_NE(before, waiting);
  ASSERT_TRUE(PlaceNext(four));
  EXPECT_EQ(cluster_->job(four).active, 4U);
}

TEST_F(PlacementTest, LeavesNoTraceOfAnAttemptThatFailed) {
  Add(Machine("a", "r0", 2));
  const JobId job = Add(Gang("j", 3, 3, 1));
  const auto before = cluster_->Dump();
  EXPECT_FALSE(PlaceNext(job));
  EXPECT_EQ(cluster_->Dump(), before);
}

TEST_F(PlacementTest, PutsAGangOnAsFewNodesAsItCan) {
  Add(Machine("a", "r0", 2));
  Add(Machine("b", "r0", 2));
  Add(Machine("c", "r0", 4));
  const JobId job = Add(Gang("j", 4, 4, 1));
  ASSERT_TRUE(PlaceNext(job));
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(NodeOf(job, i), "c");
}

TEST_F(PlacementTest, AsksForTheMinimumFirstThenForOneWorkerAtATime) {
  Add(Machine("a", "r0", 4));
  const JobId job = Add(Gang("j", 2, 4, 1));
  std::vector<Piece> pieces;
  placement_->NextPieces(job, pieces);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].workers.size(), 2U);
  EXPECT_EQ(pieces[0].cost[kGpuDim], 2 * kMilli);
  ASSERT_TRUE(PlaceNext(job));
  placement_->NextPieces(job, pieces);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].workers.size(), 1U);
}

TEST_F(PlacementTest, KeepsARequiredLevelTogetherOrWaits) {
  Add(Machine("a", "r0", 2));
  Add(Machine("b", "r1", 2));
  Add(Machine("c", "r1", 2));
  auto spec = Gang("j", 4, 4, 1);
  spec.groups[0].topology.require = "rack";
  const JobId job = Add(spec);
  ASSERT_TRUE(PlaceNext(job));
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_NE(NodeOf(job, i), "a");
  spec = Gang("k", 5, 5, 1);
  spec.groups[0].topology.require = "rack";
  EXPECT_FALSE(PlaceNext(Add(spec)));
}

TEST_F(PlacementTest, AWorkerAboveTheMinimumJoinsTheRequiredDomain) {
  Add(Machine("a", "r0", 2));
  Add(Machine("b", "r1", 8));
  auto spec = Gang("j", 2, 3, 1);
  spec.groups[0].topology.require = "rack";
  const JobId job = Add(spec);
  ASSERT_TRUE(PlaceNext(job));
  ASSERT_EQ(NodeOf(job, 0), "a");
  EXPECT_FALSE(PlaceNext(job)) << "rack r0 is full";
}

TEST_F(PlacementTest, AFurtherGroupJoinsTheRequiredDomainOfItsParent) {
  Add(Machine("a", "r0", 1));
  Add(Machine("b", "r1", 8));
  model::Job spec = Gang("j", 1, 1, 1);
  spec.groups[0].topology.require = "rack";
  spec.groups.push_back({"g1", 0, 1, {}});
  spec.groups.push_back({"g2", 0, 1, {}});
  spec.roles[0].group = 1;
  spec.roles.push_back(spec.roles[0]);
  spec.roles[1].group = 2;
  const JobId job = Add(spec);
  ASSERT_TRUE(PlaceNext(job));
  ASSERT_EQ(NodeOf(job, 0), "a");
  EXPECT_FALSE(PlaceNext(job)) << "rack r0 is full";
}

TEST_F(PlacementTest, WidensAPreferredLevelWhereItMust) {
  Add(Machine("a", "r0", 2));
  Add(Machine("b", "r1", 2));
  auto spec = Gang("j", 4, 4, 1);
  spec.groups[0].topology.prefer = "rack";
  EXPECT_TRUE(PlaceNext(Add(spec)));
}

TEST_F(PlacementTest, ALevelThatDoesNotExistMakesTheJobWait) {
  Add(Machine("a", "r0", 2));
  auto spec = Gang("j", 1, 1, 1);
  spec.groups[0].topology = {"nowhere", "rack", ""};
  EXPECT_FALSE(PlaceNext(Add(spec)));
}

TEST_F(PlacementTest, FollowsTheOrderOfPreferredGpuTypes) {
  Add(Machine("a", "r0", 1, "A"));
  Add(Machine("b", "r0", 4, "B"));
  Add(Machine("c", "r0", 2, "C"));
  auto spec = Gang("j", 1, 1, 1);
  spec.roles[0].gpu_types = {"B", "A"};
  const JobId first = Add(spec);
  ASSERT_TRUE(PlaceNext(first));
  EXPECT_EQ(NodeOf(first, 0), "b");
  spec = Gang("k", 1, 1, 4);
  spec.roles[0].gpu_types = {"C"};
  EXPECT_FALSE(PlaceNext(Add(spec)));
}

TEST_F(PlacementTest, PacksSharesOnOneGpuButNotMembersOfOneGang) {
  Add(Machine("a", "r0", 2));
  auto share = Gang("j", 2, 2, 1);
  share.roles[0].request.gpu = {model::GpuKind::kShare, 1, 400, 0};
  const JobId apart = Add(share);
  ASSERT_TRUE(PlaceNext(apart));
  EXPECT_NE(DevicesOf(apart, 0), DevicesOf(apart, 1));
  share.name = "k";
  share.groups[0].minimum = 1;
  share.roles[0].count = 1;
  const JobId third = Add(share);
  ASSERT_TRUE(PlaceNext(third));
  EXPECT_FALSE(PlaceNext(Add(Gang("whole", 1, 1, 1)))) << "both GPUs are shared";
}

TEST_F(PlacementTest, MembersShareAGpuOnlyIfTheyAskForIt) {
  Add(Machine("a", "r0", 1));
  auto share = Gang("j", 2, 2, 1);
  share.roles[0].request.gpu = {model::GpuKind::kShare, 1, 400, 0};
  EXPECT_FALSE(PlaceNext(Add(share)));
  share.name = "k";
  share.same_device = true;
  EXPECT_TRUE(PlaceNext(Add(share)));
}

TEST_F(PlacementTest, KeepsTheGpusOfAWorkerInOneIsland) {
  Add(Machine("a", "r0", 4));
  ASSERT_TRUE(PlaceNext(Add(Gang("one", 1, 1, 1))));
  const JobId two = Add(Gang("two", 1, 1, 2));
  ASSERT_TRUE(PlaceNext(two));
  EXPECT_EQ(DevicesOf(two, 0), 0b1100U);
}

TEST_F(PlacementTest, RoomThatIsBeingLeftCanOnlyBePromised) {
  Add(Machine("a", "r0", 1));
  const JobId old = Add(Gang("old", 1, 1, 1));
  ASSERT_TRUE(cluster_->ReportWorker({old, 0}, WorkerState::kLeaving, 0, 1, 0).has_value());
  const JobId job = Add(Gang("j", 1, 1, 1));
  EXPECT_FALSE(PlaceNext(job, Mode::kFree));
  ASSERT_TRUE(PlaceNext(job, Mode::kFuture));
  EXPECT_TRUE(cluster_->worker({job, 0}).place.promised);
}

TEST_F(PlacementTest, RehousesAGroupTogetherOrNotAtAll) {
  Add(Machine("a", "r0", 2));
  Add(Machine("b", "r0", 1));
  const JobId job = Add(Gang("j", 2, 2, 1));
  ASSERT_TRUE(PlaceNext(job));
  std::vector<WorkerRef> workers = {{job, 0}, {job, 1}};
  for (const auto& ref : workers) {
    Place to;
    to.left_bank = cluster_->worker(ref).place.bank;
    to.left_devices = cluster_->worker(ref).place.devices;
    cluster_->Move(ref, to);
  }
  cluster_->SetNodeCordoned(0, true, true);
  EXPECT_EQ(placement_->Rehouse(0, workers), 0U) << "room for one of two";
  Add(Machine("c", "r0", 2));
  EXPECT_EQ(placement_->Rehouse(0, workers), 2U);
  EXPECT_EQ(NodeOf(job, 0), "c");
}

TEST_F(PlacementTest, AWorkerWithoutGpusGoesToTheNodeWithoutGpus) {
  Add(Machine("a", "r0", 2));
  Add(Machine("b", "r0", 0));
  auto spec = Gang("j", 1, 1, 0);
  spec.roles[0].request.gpu = {};
  spec.roles[0].request.cpu_milli = kMilli;
  const JobId job = Add(spec);
  ASSERT_TRUE(PlaceNext(job));
  EXPECT_EQ(NodeOf(job, 0), "b");
}

}  // namespace
}  // namespace muster::engine

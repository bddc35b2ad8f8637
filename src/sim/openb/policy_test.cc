#include "sim/openb/policy.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::sim {
namespace {

NodeState Node(std::int64_t cores, std::vector<std::int32_t> rooms, std::uint32_t type = 0) {
  NodeState node;
  node.cpu_milli = cores * 1000;
  node.memory_mib = 1 << 20;
  node.type = type;
  node.gpus = static_cast<std::uint32_t>(rooms.size());
  std::copy(rooms.begin(), rooms.end(), node.room.begin());
  return node;
}

PodShape Whole(std::int64_t cores, std::uint32_t gpus) { return {cores * 1000, 1, gpus, 1000}; }
PodShape Share(std::int64_t cores, std::int64_t milli) { return {cores * 1000, 1, 1, milli}; }
PodShape Host(std::int64_t cores) { return {cores * 1000, 1, 0, 0}; }

// All but muster: the engine's nodes begin empty, see muster_pods_test.cc.
std::span<const std::string_view> LabPolicies() {
  return PlacementPolicyNames().first(PlacementPolicyNames().size() - 1);
}

class PolicyTest : public ::testing::Test {
 protected:
  // Where a pod goes if pods like `expected` are expected.
  std::optional<PodPlace> Choose(std::string_view name, const PodShape& pod,
                                 std::vector<PodShape> expected = {Whole(1, 1)}) {
    OpenbTrace trace;
    trace.nodes = nodes_;
    trace.shapes = std::move(expected);
    for (std::uint32_t i = 0; i < trace.shapes.size(); ++i) trace.pods.push_back(i);
    const TargetWorkload target(trace);
    auto policy = MakePlacementPolicy(name, {target, random_});
    EXPECT_TRUE(policy);
    trace.shapes.push_back(pod);
    const auto shape = static_cast<std::uint32_t>(trace.pods.size());
    (*policy)->Arrives(nodes_, trace.shapes, shape);
    return (*policy)->Choose(nodes_, trace.shapes, shape);
  }
  std::size_t NodeFor(std::string_view name, const PodShape& pod,
                      std::vector<PodShape> expected = {Whole(1, 1)}) {
    const auto place = Choose(name, pod, std::move(expected));
    return place ? place->node : nodes_.size();
  }

  std::vector<NodeState> nodes_;
  Random random_{7};
};

TEST_F(PolicyTest, AnUnknownNameListsTheOthers) {
  OpenbTrace trace;
  const TargetWorkload target(trace);
  const auto policy = MakePlacementPolicy("tetris", {target, random_});
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().code, ErrorCode::kNotFound);
  for (const auto name : PlacementPolicyNames())
    EXPECT_NE(policy.error().hint.find(name), std::string::npos) << name;
}

TEST_F(PolicyTest, NobodyPlacesAPodWhereItDoesNotFit) {
  NodeState little_memory = Node(64, {1000, 1000});
  little_memory.memory_mib = 0;
  nodes_ = {Node(64, {400, 500}), Node(1, {1000}), little_memory, Node(64, {1000}, 1)};
  PodShape pod = Share(4, 600);
  pod.types = 1;
  for (const auto name : LabPolicies()) EXPECT_FALSE(Choose(name, pod)) << name;
  nodes_.push_back(Node(64, {100, 600}));
  for (const auto name : LabPolicies()) {
    const auto place = Choose(name, pod);
    ASSERT_TRUE(place) << name;
    EXPECT_EQ(place->node, 4U) << name;
    EXPECT_EQ(place->gpu, 1U) << name;
  }
}

TEST_F(PolicyTest, ScoredPoliciesTakeTheFirstOfEquals) {
  nodes_ = {Node(1, {1000}), Node(64, {1000, 1000}), Node(64, {1000, 1000})};
  for (const auto name : LabPolicies().subspan(1))  // all but random
    EXPECT_EQ(NodeFor(name, Whole(8, 1)), 1U) << name;
}

TEST_F(PolicyTest, ScoresFollowWhatWasPlaced) {
  nodes_ = {Node(64, {1000, 1000}), Node(64, {1000, 1000})};
  OpenbTrace trace;
  const TargetWorkload target(trace);
  const auto policy = MakePlacementPolicy("packing", {target, random_});
  ASSERT_TRUE(policy);
  const std::vector<PodShape> shapes{Share(4, 600)};
  std::vector<std::size_t> order;
  while (const auto place = (*policy)->Choose(nodes_, shapes, 0)) {
    order.push_back(place->node);
    nodes_[place->node].Take(shapes[0], place->gpu);
  }
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 0, 1, 1}));
}

TEST_F(PolicyTest, RandomComesToEveryFittingNodeAndGpu) {
  nodes_ = {Node(64, {1000, 400, 1000}), Node(64, {200}), Node(64, {1000})};
  std::set<std::pair<std::size_t, std::uint32_t>> seen;
  for (int i = 0; i < 100; ++i) {
    const auto place = Choose("random", Share(1, 500));
    ASSERT_TRUE(place);
    seen.emplace(place->node, place->gpu);
  }
  EXPECT_EQ(seen, (std::set<std::pair<std::size_t, std::uint32_t>>{{0, 0}, {0, 2}, {2, 0}}));
}

TEST_F(PolicyTest, BestFitLeavesLeastOfCoresAndGpu) {
  nodes_ = {Node(96, {1000, 1000}), Node(64, {1000, 1000}), Node(30, {1000, 1000, 1000, 1000})};
  EXPECT_EQ(NodeFor("best-fit", Whole(8, 1)), 2U);  // 2 GPUs count as much as 32 cores
  nodes_[2] = Node(40, {1000, 1000, 1000, 1000});
  EXPECT_EQ(NodeFor("best-fit", Whole(8, 1)), 1U);
}

TEST_F(PolicyTest, BestFitGivesAShareTheTightestGpu) {
  nodes_ = {Node(64, {1000, 700, 600, 300})};
  EXPECT_EQ(Choose("best-fit", Share(4, 500))->gpu, 2U);
}

TEST_F(PolicyTest, DotProductAvoidsNodesWithMuchOfWhatIsAskedFor) {
  nodes_ = {Node(128, {1000}), Node(16, {1000, 1000, 1000, 1000})};
  EXPECT_EQ(NodeFor("dot-product", {16'000, 1, 1, 100}), 1U);  // asks for cores above all
  EXPECT_EQ(NodeFor("dot-product", {1'000, 1, 1, 1000}), 0U);
}

TEST_F(PolicyTest, ClusteringKeepsKindsApart) {
  nodes_ = {Node(64, {1000, 1000, 1000}), Node(64, {1000, 1000, 1000}),
            Node(64, {1000, 1000, 1000, 1000}), Node(64, {1000, 1000, 1000})};
  nodes_[0].Take(Whole(1, 1), 0);
  nodes_[0].Take(Share(1, 100), 1);
  nodes_[1].Take(Share(1, 100), 0);
  EXPECT_EQ(NodeFor("clustering", Share(1, 100)), 1U);
  EXPECT_EQ(NodeFor("clustering", Whole(1, 1)), 0U);
  EXPECT_EQ(NodeFor("clustering", Whole(1, 2)), 3U);  // idle before mixed, small before large
  EXPECT_EQ(NodeFor("clustering", Host(1)), 0U);
}

TEST_F(PolicyTest, PackingOpensAsLittleAsItCan) {
  nodes_ = {Node(64, {1000, 1000}), Node(64, {1000}), Node(64, {1000, 0}), Node(64, {900, 600})};
  EXPECT_EQ(NodeFor("packing", Share(1, 500)), 3U);
  EXPECT_EQ(Choose("packing", Share(1, 500))->gpu, 1U);
  EXPECT_EQ(NodeFor("packing", Whole(1, 1)), 2U);
  EXPECT_EQ(NodeFor("packing", Whole(1, 2)), 0U);
  nodes_[2].Take(Whole(1, 1), 0);
  EXPECT_EQ(NodeFor("packing", Whole(1, 1)), 1U);
}

TEST_F(PolicyTest, FgdKeepsWholeGpusForThoseWhoAskForThem) {
  nodes_ = {Node(64, {1000, 1000}), Node(64, {1000, 500})};
  const auto place = Choose("fgd", Share(1, 500), {Whole(1, 1), Share(1, 500)});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->node, 1U);
  EXPECT_EQ(place->gpu, 1U);
}

TEST_F(PolicyTest, FgdKeepsCoresBesideIdleGpus) {
  nodes_ = {Node(8, {1000}), Node(16, {1000})};
  EXPECT_EQ(NodeFor("fgd", Host(8), {Whole(8, 1)}), 1U);
}

TEST(TargetWorkloadTest, FragmentationIsWhatExpectedPodsCannotUse) {
  OpenbTrace trace;
  trace.shapes = {Whole(8, 1), Share(8, 500), Host(8), Whole(8, 2)};
  trace.shapes[3].types = 2;  // a type the node does not have
  trace.pods = {0, 1, 2, 3};
  const TargetWorkload target(trace);
  EXPECT_EQ(target.expected().size(), 4U);
  // A whole GPU leaves 300 + 600 unused, the half one 300; the others cannot use anything.
  EXPECT_DOUBLE_EQ(target.Fragmentation(Node(8, {300, 600, 1000})),
                   (900 + 300 + 1900 + 1900) / 4.0);
  // Too few cores for anybody.
  EXPECT_DOUBLE_EQ(target.Fragmentation(Node(7, {300, 600, 1000})), 1900);
}

TEST(TargetWorkloadTest, RareShapesAreLeftOut) {
  OpenbTrace trace;
  trace.shapes = {Whole(8, 1), Share(8, 500), Share(9, 500)};
  trace.pods.assign(95, 0);
  trace.pods.insert(trace.pods.end(), {1, 1, 1, 1, 2});
  const TargetWorkload target(trace);
  ASSERT_EQ(target.expected().size(), 1U);
  EXPECT_DOUBLE_EQ(target.expected()[0].popularity, 1);
}

}  // namespace
}  // namespace muster::sim

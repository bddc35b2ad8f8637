#include "sim/openb/muster_pods.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace muster::sim {
namespace {

NodeState Node(std::int64_t cores, std::uint32_t gpus, std::uint32_t type = 0) {
  NodeState node;
  node.cpu_milli = cores * 1000;
  node.memory_mib = 1 << 20;
  node.type = type;
  node.gpus = gpus;
  for (std::uint32_t i = 0; i < gpus; ++i) node.room[i] = kWholeGpu;
  return node;
}

class MusterPodsTest : public ::testing::Test {
 protected:
  std::optional<PodPlace> Arrive(const PodShape& pod) {
    const std::vector<PodShape> shapes = {pod};
    pods_->Arrives(nodes_, shapes, 0);
    const auto place = pods_->Choose(nodes_, shapes, 0);
    if (place) nodes_[place->node].Take(pod, place->gpu);  // checks that it fits
    return place;
  }

  std::vector<NodeState> nodes_;
  std::unique_ptr<MusterPods> pods_ = std::make_unique<MusterPods>();
};

TEST_F(MusterPodsTest, SharesFillAGpuAndWholePodsTakeTheOther) {
  nodes_ = {Node(64, 2)};
  const auto first = Arrive({1000, 1, 1, 600});
  const auto second = Arrive({1000, 1, 1, 400});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->gpu, second->gpu);
  EXPECT_TRUE(Arrive({1000, 1, 1, 1000}));
  EXPECT_FALSE(Arrive({1000, 1, 1, 100}));
  EXPECT_TRUE(Arrive({1000, 1, 0, 0}));
}

TEST_F(MusterPodsTest, CoresMemoryAndTypesBind) {
  nodes_ = {Node(4, 2, 0), Node(64, 2, 1)};
  nodes_[1].memory_mib = 100;
  EXPECT_FALSE(Arrive({8000, 1, 2, 1000, 1}));
  EXPECT_FALSE(Arrive({8000, 200, 2, 1000, ~0ULL}));
  EXPECT_FALSE(Arrive({1000, 1, 1, 1000, 4})) << "a type that no node has";
  const auto place = Arrive({8000, 100, 2, 1000, 3});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->node, 1U);
}

TEST_F(MusterPodsTest, APodThatFoundNoRoomIsNotTriedAgain) {
  nodes_ = {Node(64, 1), Node(8, 1)};
  EXPECT_FALSE(Arrive({1000, 1, 2, 1000}));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Arrive({4000, 1, 1, 1000}));
  EXPECT_FALSE(Arrive({4000, 1, 1, 1000}));
  EXPECT_FALSE(Arrive({4000, 1, 1, 1000}));
}

// Fullest first, without a look at what is wanted, would fill the first node.
TEST_F(MusterPodsTest, PodsGoWhereThoseToComeLoseTheLeast) {
  nodes_ = {Node(96, 8), Node(1040, 9)};
  for (int i = 0; i < 4; ++i) Arrive({11'000, 1, 1, 1000});
  const auto place = Arrive({24'000, 1, 1, 1000});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->node, 1U);
}

TEST_F(MusterPodsTest, PlacementByWorthCanBeSwitchedOff) {
  engine::Policy policy;
  policy.place_by_worth = false;
  pods_ = std::make_unique<MusterPods>(policy);
  nodes_ = {Node(96, 8), Node(1040, 9)};
  for (int i = 0; i < 4; ++i) Arrive({11'000, 1, 1, 1000});
  const auto place = Arrive({24'000, 1, 1, 1000});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->node, 0U);
}

}  // namespace
}  // namespace muster::sim

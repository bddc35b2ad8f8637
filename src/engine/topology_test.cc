#include "engine/topology.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

model::Node NodeAt(const std::string& name, const std::string& zone, const std::string& rack) {
  model::Node node;
  node.name = name;
  if (!zone.empty()) node.labels["zone"] = zone;
  if (!rack.empty()) node.labels["rack"] = rack;
  for (int i = 0; i < 4; ++i) {
    model::Gpu gpu;
    gpu.numa = i / 2;
    gpu.nvlink_island = i < 2 ? 0 : -1;
    node.gpus.push_back(gpu);
  }
  return node;
}

class TopologyTest : public testing::Test {
 protected:
  TopologyTest() : table_(std::vector<model::Topology>{{"fabric", {"zone", "rack"}}}) {
    table_.AddNode(0, NodeAt("a", "z0", "r0"));
    table_.AddNode(1, NodeAt("b", "z0", "r1"));
    table_.AddNode(2, NodeAt("c", "z1", "r0"));
    table_.AddNode(3, NodeAt("d", "z1", ""));
    table_.AddNode(4, NodeAt("e", "", "r0"));
  }

  const Level& LevelNamed(const std::string& name) const {
    return table_.level(table_.Find("", name));
  }

  TopologyTable table_;
};

TEST_F(TopologyTest, EqualRackNamesInTwoZonesAreTwoRacks) {
  const auto& rack = LevelNamed("rack");
  EXPECT_NE(rack.domain_of[0], rack.domain_of[2]);
  EXPECT_EQ(LevelNamed("zone").domain_of[2], LevelNamed("zone").domain_of[3]);
}

TEST_F(TopologyTest, ANodeWithoutTheLabelLiesInNoDomain) {
  EXPECT_EQ(LevelNamed("rack").domain_of[3], kNone);
  EXPECT_NE(LevelNamed("rack").domain_of[4], kNone) << "a rack in no zone is one all the same";
  EXPECT_EQ(LevelNamed("zone").domain_of[4], kNone);
  EXPECT_NE(LevelNamed("node").domain_of[4], kNone);
}

TEST_F(TopologyTest, LevelsBelowTheNodeDivideItsGpus) {
  const auto& numa = LevelNamed("numa");
  ASSERT_EQ(numa.domains.size(), 10U);
  EXPECT_TRUE(numa.below_node);
  EXPECT_EQ(numa.domains[0].devices, 0b0011U);
  EXPECT_EQ(numa.domains[1].devices, 0b1100U);
  EXPECT_EQ(LevelNamed("nvlink").domains.size(), 15U) << "a GPU without NVLink is alone";
}

TEST_F(TopologyTest, FindsLevelsByTopologyOrInTheFirstOne) {
  EXPECT_EQ(table_.Find("", "rack"), table_.Find("fabric", "rack"));
  EXPECT_EQ(table_.Find("other", "rack"), kNone);
  EXPECT_EQ(table_.Find("", "row"), kNone);
  EXPECT_EQ(LevelNamed("rack").wider, table_.Find("", "zone"));
  EXPECT_EQ(LevelNamed("zone").wider, kNone);
}

TEST(Topology, KnowsTheBuiltInLevelsWithoutAnyDefinition) {
  TopologyTable table({});
  table.AddNode(0, NodeAt("a", "", ""));
  EXPECT_NE(table.Find("", "node"), kNone);
  EXPECT_NE(table.Find("", "nvlink"), kNone);
}

}  // namespace
}  // namespace muster::engine

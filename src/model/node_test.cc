#include "model/node.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::model {
namespace {

TEST(ExpandNodes, SpreadsGpusAndNicsOverSocketsAndIslands) {
  Pool pool;
  pool.name = "lab";
  NodeGroup group;
  group.gpus = 8;
  group.type = "A100";
  group.sockets = 2;
  group.nics = 2;
  group.nvlink_size = 4;
  pool.nodes = {group};
  const auto nodes = ExpandNodes(pool);
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].name, "lab-0");
  EXPECT_EQ(nodes[0].pool, "lab");
  ASSERT_EQ(nodes[0].gpus.size(), 8U);
  EXPECT_EQ(nodes[0].gpus[3].numa, 0);
  EXPECT_EQ(nodes[0].gpus[4].numa, 1);
  EXPECT_EQ(nodes[0].gpus[3].nvlink_island, 0);
  EXPECT_EQ(nodes[0].gpus[4].nvlink_island, 1);
  EXPECT_EQ(nodes[0].nics[1], (Nic{"nic1", 1}));
}

TEST(ExpandNodes, PutsNodesIntoRacksAndZonesOfOneKind) {
  Pool pool;
  pool.name = "p";
  NodeGroup group;
  group.count = 5;
  group.nodes_per_rack = 2;
  group.racks_per_zone = 2;
  pool.nodes = {group, group};
  const auto nodes = ExpandNodes(pool);
  ASSERT_EQ(nodes.size(), 10U);
  EXPECT_EQ(nodes[1].labels.at("rack"), "p-rack-0");
  EXPECT_EQ(nodes[4].labels.at("rack"), "p-rack-2");
  EXPECT_EQ(nodes[4].labels.at("zone"), "p-zone-1");
  EXPECT_EQ(nodes[5].labels.at("rack"), "p-rack-3");
  EXPECT_EQ(nodes[5].labels.at("zone"), "p-zone-2");
  std::set<std::string> names;
  for (const auto& node : nodes) names.insert(node.name);
  EXPECT_EQ(names.size(), 10U);
}

TEST(ExpandNodes, VirtualGpusBringVirtualCoresAndMemoryAndAreMarked) {
  Pool pool;
  pool.name = "here";
  pool.virtual_gpus = {4, "virtual", std::int64_t{16} << 30, 2'000};
  const auto nodes = ExpandNodes(pool);
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].gpus.size(), 4U);
  EXPECT_EQ(nodes[0].cpu_milli, 8'000);
  EXPECT_EQ(nodes[0].memory_bytes, std::int64_t{64} << 30);
  EXPECT_EQ(nodes[0].labels.at("virtual"), "true");
}

}  // namespace
}  // namespace muster::model

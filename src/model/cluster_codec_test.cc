#include "model/cluster_codec.h"

#include <gtest/gtest.h>

#include "model/spec_codec.h"

namespace muster::model {
namespace {

TEST(ClusterCodec, ReadsTheFileOfTheInterface) {
  const auto cluster = DecodeCluster(R"(
pools:
  - {name: here, driver: local, virtual_gpus: {count: 8, type: virtual, memory: 16Gi, cores_each: 4}}
  - {name: lab, driver: simulated, nodes: [{count: 64, gpus: 8, type: H100, gpu_memory: 80Gi, cpus: 96, memory: 1Ti, nvlink: all, nodes_per_rack: 8}]}
topology: [zone, rack, node, numa, nvlink]
)");
  ASSERT_TRUE(cluster.has_value()) << Describe(cluster.error());
  ASSERT_EQ(cluster->pools.size(), 2U);
  EXPECT_EQ(cluster->pools[0].virtual_gpus,
            (VirtualGpus{8, "virtual", std::int64_t{16} << 30, 4'000}));
  const auto& nodes = cluster->pools[1].nodes[0];
  EXPECT_EQ(nodes.count, 64);
  EXPECT_EQ(nodes.nvlink_size, 8);
  EXPECT_EQ(nodes.cpu_milli, 96'000);
  ASSERT_EQ(cluster->topologies.size(), 1U);
  EXPECT_EQ(cluster->topologies[0].levels.size(), 5U);
}

TEST(ClusterCodec, SeveralTopologiesHaveNames) {
  const auto cluster = DecodeCluster(
      "pools: [{name: a, driver: slurm}]\ntopology: {net: [zone, node], power: [feed, node]}");
  ASSERT_TRUE(cluster.has_value()) << Describe(cluster.error());
  ASSERT_EQ(cluster->topologies.size(), 2U);
  EXPECT_EQ(cluster->topologies[1].name, "power");
}

TEST(ClusterCodec, AFileMayHoldPoolsTopologyAndQueues) {
  const auto decoded =
      DecodeSpec("pools: [{name: a, driver: local}]\ntopology: [node]\nqueues: [{name: q}]");
  EXPECT_FALSE(decoded.problems.HasErrors());
  EXPECT_EQ(decoded.spec.kind, SpecKind::kCluster);
  EXPECT_EQ(decoded.spec.queues.size(), 1U);
  EXPECT_EQ(DecodeSpec("topology: [rack, node]").spec.kind, SpecKind::kCluster);
  EXPECT_EQ(DecodeSpec("queues: [{name: q}]").spec.kind, SpecKind::kQueues);
  EXPECT_EQ(DecodeSpec("queues: [{name: q}]\n---\nname: j").spec.kind, SpecKind::kMixed);
}

TEST(ClusterCodec, RefusesPoolsThatWouldFillTheMemoryWhenExpanded) {
  EXPECT_FALSE(DecodeCluster("pools: [{name: a, driver: simulated, nodes: [{count: 1000000, "
                             "gpus: 64}]}]")
                   .has_value());
  EXPECT_FALSE(DecodeCluster("pools: [{name: a, driver: simulated, nodes: [{count: 1000000}, "
                             "{count: 1}]}]")
                   .has_value());
  EXPECT_FALSE(DecodeCluster("pools: [{name: a, driver: simulated, nodes: [{count: 1000000, "
                             "memory: 1Pi}]}]")
                   .has_value());
}

}  // namespace
}  // namespace muster::model

#include "device/machine_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/tree.h"
#include "model/vocabulary.h"

namespace muster::device {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kGi = std::int64_t{1} << 30;

// The host of testdata: 2 NUMA nodes (0 and 2 to the kernel), 4 cores each, GPUs 1b and 2b at one
// PCIe switch on the first, 6b on the second. No control group.
DiscoverOptions TwoSockets() {
  DiscoverOptions options;
  options.name = "n1";
  options.pool = "local";
  auto xml = ReadFile(SourceTree() + "/src/device/testdata/two_sockets.xml");
  EXPECT_TRUE(xml.has_value());
  options.host.hwloc_xml = xml.value_or("");
  options.cgroup.membership = "/no/such/file";
  options.nvml.libraries = {"libmuster-no-such.so.1"};
  return options;
}

DiscoverOptions TwoSockets(const std::string& stub) {
  auto options = TwoSockets();
  options.nvml.libraries = {MUSTER_NVML_STUBS + stub + ".so"};
  return options;
}

// What a driver might answer that no stub does.
class GivenGpus final : public GpuProbe {
 public:
  explicit GivenGpus(std::vector<GpuFacts> gpus) : gpus_(std::move(gpus)) {}
  Result<std::vector<GpuFacts>> List() override { return gpus_; }
  Result<GpuSample> Sample(int) override { return GpuSample{}; }

 private:
  std::vector<GpuFacts> gpus_;
};

GpuFacts At(int index, const std::string& pci_bus_id) {
  GpuFacts gpu;
  gpu.index = index;
  gpu.type = "H100";
  gpu.pci_bus_id = pci_bus_id;
  return gpu;
}

template <typename Member>
std::vector<int> Each(const model::Node& node, Member member) {
  std::vector<int> values;
  for (const auto& gpu : node.gpus) values.push_back(gpu.*member);
  return values;
}

TEST(DiscoverNode, ThisMachineIsANodeThatTheFilesCouldName) {
  const auto found = DiscoverNode({});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_TRUE(model::IsName(found->node.name)) << found->node.name;
  EXPECT_GE(found->node.cpu_milli, 1);
  EXPECT_GT(found->node.memory_bytes, 0);
  EXPECT_GE(found->node.sockets, 1);
  EXPECT_EQ(found->cores_of_numa.size(), static_cast<std::size_t>(found->node.sockets));
  EXPECT_EQ(found->gpus.size(), found->node.gpus.size());
  for (const auto& gpu : found->node.gpus) {
    EXPECT_TRUE(model::IsGpuTypeName(gpu.type));
    EXPECT_LT(gpu.numa, found->node.sockets);
  }
}

TEST(DiscoverNode, WithoutADriverItIsANodeWithoutGpus) {
  const auto found = DiscoverNode(TwoSockets());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node.name, "n1");
  EXPECT_EQ(found->node.pool, "local");
  EXPECT_EQ(found->node.sockets, 2);
  EXPECT_EQ(found->node.cpu_milli, 8'000);
  EXPECT_EQ(found->node.memory_bytes, 128 * kGi);
  EXPECT_EQ(found->node.nics.size(), 3U);
  EXPECT_THAT(found->node.gpus, IsEmpty());
  EXPECT_THAT(found->notes, IsEmpty());
  EXPECT_THAT(found->cores_of_numa, ElementsAre(ElementsAre(0, 2, 1, 3), ElementsAre(4, 6, 5, 7)));
}

TEST(DiscoverNode, EightGpusWithNvlinkAreOneIslandWithPairsAtSwitches) {
  const auto found = DiscoverNode(TwoSockets("eight"));
  ASSERT_TRUE(found.has_value());
  const auto& node = found->node;
  ASSERT_EQ(node.gpus.size(), 8U);
  ASSERT_EQ(found->gpus.size(), 8U);
  EXPECT_EQ(node.gpus[0].type, "H100");
  EXPECT_EQ(node.gpus[0].memory_bytes, 80 * kGi);
  EXPECT_THAT(Each(node, &model::Gpu::nvlink_island), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Each(node, &model::Gpu::pcie_switch), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(Each(node, &model::Gpu::numa), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(found->notes, IsEmpty());
}

TEST(DiscoverNode, TheHostKnowsAGpusNumaNodeBetterThanTheDriver) {
  auto gpu = At(0, "0000:6b:00.0");
  gpu.numa = 0;
  GivenGpus probe({gpu});
  const auto found = DiscoverNode(TwoSockets(), probe);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(Each(found->node, &model::Gpu::numa), ElementsAre(1));
}

TEST(DiscoverNode, AGpuWhoseNumaNodeNobodyKnowsIsTakenToTheFirstWithANote) {
  auto memory_only = At(1, "0000:ff:00.0");
  memory_only.numa = 1;
  GivenGpus probe({At(0, ""), memory_only});
  const auto found = DiscoverNode(TwoSockets(), probe);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(Each(found->node, &model::Gpu::numa), ElementsAre(0, 0));
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("GPU 0: its NUMA node is not known"),
                                        HasSubstr("GPU 1: its NUMA node is not known")));
}

TEST(DiscoverNode, WhereTheHostDoesNotKnowTheDriversNumaNodeCounts) {
  auto gpu = At(0, "0000:ff:00.0");
  gpu.numa = 2;
  GivenGpus probe({gpu});
  const auto found = DiscoverNode(TwoSockets(), probe);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(Each(found->node, &model::Gpu::numa), ElementsAre(1));
  EXPECT_THAT(found->notes, IsEmpty());
}

TEST(DiscoverNode, GpusWithoutNvlinkHaveNoIslandAndSwitchesOfTheirOwn) {
  const auto found = DiscoverNode(TwoSockets("two"));
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(Each(found->node, &model::Gpu::nvlink_island), ElementsAre(-1, -1));
  EXPECT_THAT(Each(found->node, &model::Gpu::pcie_switch), ElementsAre(0, 1));
}

TEST(DiscoverNode, WhereTheDriverIsSilentTheBridgesTellTheSwitches) {
  GivenGpus probe({At(0, "0000:1b:00.0"), At(1, "0000:6b:00.0"), At(2, "0000:2b:00.0")});
  const auto found = DiscoverNode(TwoSockets(), probe);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(Each(found->node, &model::Gpu::pcie_switch), ElementsAre(0, -1, 0));
  EXPECT_THAT(Each(found->node, &model::Gpu::numa), ElementsAre(0, 1, 0));
}

TEST(DiscoverNode, IslandsAreCountedApart) {
  std::vector<GpuFacts> gpus;
  for (int i = 0; i < 5; ++i) gpus.push_back(At(i, ""));
  gpus[0].nvlink_peers = {3};
  gpus[1].nvlink_peers = {2};  // and 2 does not say so
  gpus[4].nvlink_peers = {7};  // not here
  GivenGpus probe(gpus);
  const auto found = DiscoverNode(TwoSockets(), probe);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(Each(found->node, &model::Gpu::nvlink_island), ElementsAre(0, 1, 1, 0, -1));
}

TEST(DiscoverNode, FaultyGpusAreLeftOutAndNamed) {
  const auto found = DiscoverNode(TwoSockets("sick"));
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->node.gpus.size(), 2U);
  ASSERT_EQ(found->gpus.size(), 2U);
  EXPECT_EQ(found->gpus[1].index, 1);
  EXPECT_THAT(Each(found->node, &model::Gpu::nvlink_island), ElementsAre(0, 0));
  EXPECT_THAT(found->notes, Contains(HasSubstr("GPU 2 is left out: it has fallen off the bus")));
  EXPECT_THAT(found->notes, Contains(HasSubstr("GPU 3 is left out: it is cut into instances")));
}

TEST(DiscoverNode, ADriverThatDoesNotAnswerIsANoteOnANodeWithoutGpus) {
  const auto found = DiscoverNode(TwoSockets("broken"));
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->node.gpus, IsEmpty());
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("version mismatch")));
}

TEST(DiscoverNode, TheAffinityMaskBoundsTheCores) {
  auto options = TwoSockets();
  options.host.affinity = {0, 1, 2};
  const auto found = DiscoverNode(options);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node.cpu_milli, 3'000);
  EXPECT_EQ(found->node.sockets, 2);
  EXPECT_THAT(found->notes, ElementsAre("3 of 8 cores: the affinity mask of this process",
                                        "NUMA node 1 has no core that this process may use"));
}

class BoundedByCgroup : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            ("muster-bounded-" +
             std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    std::ofstream(root_ / "membership") << "0::/\n";
    options_ = TwoSockets();
    options_.cgroup = {root_.string(), (root_ / "membership").string()};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path root_;
  DiscoverOptions options_;
};

TEST_F(BoundedByCgroup, TheLesserOfQuotaAndMaskWinsAndIsNamed) {
  std::ofstream(root_ / "cpu.max") << "250000 100000\n";
  auto found = DiscoverNode(options_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node.cpu_milli, 2'500);
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("2.5 of 8 cores: the control group's quota")));
  options_.host.affinity = {0, 4};
  found = DiscoverNode(options_);
  EXPECT_EQ(found->node.cpu_milli, 2'000);
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("2 of 8 cores: the affinity mask")));
}

TEST_F(BoundedByCgroup, TheMemoryLimitBoundsTheMemory) {
  std::ofstream(root_ / "memory.max") << 3 * kGi << "\n";
  const auto found = DiscoverNode(options_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node.memory_bytes, 3 * kGi);
  EXPECT_THAT(found->notes,
              ElementsAre(HasSubstr("3Gi of 128Gi memory: the control group's limit")));
}

TEST_F(BoundedByCgroup, ALimitAboveWhatIsThereBoundsNothing) {
  std::ofstream(root_ / "memory.max") << 1000 * kGi << "\n";
  std::ofstream(root_ / "cpu.max") << "6400000 100000\n";
  const auto found = DiscoverNode(options_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node.memory_bytes, 128 * kGi);
  EXPECT_EQ(found->node.cpu_milli, 8'000);
  EXPECT_THAT(found->notes, IsEmpty());
}

TEST(DiscoverNode, VirtualGpusBringTheirCoresAndMemoryAndAreMarked) {
  auto options = TwoSockets();
  options.virtual_gpus = {
      .count = 4, .type = "H200", .memory_bytes = 141 * kGi, .cores_each_milli = 16'000};
  const auto found = DiscoverNode(options);
  ASSERT_TRUE(found.has_value());
  const auto& node = found->node;
  ASSERT_EQ(node.gpus.size(), 4U);
  EXPECT_EQ(node.gpus[3].type, "H200");
  EXPECT_EQ(node.gpus[3].memory_bytes, 141 * kGi);
  EXPECT_THAT(Each(node, &model::Gpu::numa), ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(node.cpu_milli, 64'000);
  EXPECT_EQ(node.memory_bytes, 4 * 141 * kGi);
  EXPECT_EQ(node.labels.at("virtual"), "true");
  EXPECT_THAT(found->gpus, IsEmpty());
}

TEST(DiscoverNode, VirtualGpusHaveDefaultsAndDoNotShrinkTheMachine) {
  auto options = TwoSockets();
  options.virtual_gpus.count = 1;
  const auto found = DiscoverNode(options);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node.gpus[0].type, "virtual");
  EXPECT_EQ(found->node.gpus[0].memory_bytes, 16 * kGi);
  EXPECT_EQ(found->node.cpu_milli, 8'000);  // 4 would do, 8 are here
  EXPECT_EQ(found->node.memory_bytes, 128 * kGi);
  options.virtual_gpus.count = 3;
  EXPECT_EQ(DiscoverNode(options)->node.cpu_milli, 12'000);
}

TEST(DiscoverNode, RealGpusStandBackForVirtualOnes) {
  auto options = TwoSockets("eight");
  options.virtual_gpus.count = 2;
  const auto found = DiscoverNode(options);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node.gpus.size(), 2U);
  EXPECT_THAT(found->gpus, IsEmpty());
  EXPECT_THAT(found->notes, ElementsAre(HasSubstr("8 real GPUs are not offered")));
}

}  // namespace
}  // namespace muster::device

#include "device/nvml_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NvmlOptions Stub(const std::string& machine) {
  return {.libraries = {MUSTER_NVML_STUBS + machine + ".so"}};
}

std::vector<GpuFacts> ListOf(const std::string& machine) {
  NvmlProbe probe(Stub(machine));
  auto listed = probe.List();
  EXPECT_TRUE(listed.has_value()) << listed.error().message;
  return listed ? *listed : std::vector<GpuFacts>{};
}

TEST(NvmlProbe, ListsWhatEachGpuIs) {
  const auto gpus = ListOf("eight");
  ASSERT_EQ(gpus.size(), 8U);
  const auto& gpu = gpus[5];
  EXPECT_EQ(gpu.index, 5);
  EXPECT_EQ(gpu.uuid, "GPU-00000000-0000-0000-0000-000000000005");
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.type, "H100");
  EXPECT_EQ(gpu.memory_bytes, std::int64_t{80} << 30);
  EXPECT_EQ(gpu.pci_bus_id, "0000:6b:00.0");
  EXPECT_EQ(gpu.minor, 2);
  EXPECT_EQ(gpu.numa, 2);
  EXPECT_EQ(gpus[3].numa, 0);
  EXPECT_EQ(gpu.fault, "");
}

TEST(NvmlProbe, FindsDirectNvlinkPeersAndCommonPcieSwitches) {
  const auto gpus = ListOf("eight");
  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_EQ(gpus[2].nvlink_links, 7);
  EXPECT_THAT(gpus[2].nvlink_peers, ElementsAre(0, 1, 3, 4, 5, 6, 7));
  ASSERT_TRUE(gpus[2].pcie_peers.has_value());
  EXPECT_THAT(*gpus[2].pcie_peers, ElementsAre(3));
  EXPECT_THAT(*gpus[3].pcie_peers, ElementsAre(2));
}

TEST(NvmlProbe, GpusWithoutNvlinkUnderDifferentSwitchesHaveNoPeers) {
  const auto gpus = ListOf("two");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].type, "RTX-4090");
  EXPECT_EQ(gpus[0].nvlink_links, 0);
  EXPECT_THAT(gpus[0].nvlink_peers, IsEmpty());
  ASSERT_TRUE(gpus[0].pcie_peers.has_value());
  EXPECT_THAT(*gpus[0].pcie_peers, IsEmpty());
}

TEST(NvmlProbe, AHiddenSwitchJoinsGpusAndAFaultyGpuDoesNotHideTheOthers) {
  const auto gpus = ListOf("sick");
  ASSERT_EQ(gpus.size(), 4U);
  EXPECT_THAT(gpus[0].nvlink_peers, ElementsAre(1));
  EXPECT_EQ(gpus[0].fault, "");
  EXPECT_EQ(gpus[2].index, 2);
  EXPECT_THAT(gpus[2].fault, HasSubstr("fallen off the bus"));
  EXPECT_THAT(gpus[3].fault, HasSubstr("MIG"));
  EXPECT_THAT(gpus[3].fault, HasSubstr("nvidia-smi -i 3 -mig 0"));
}

TEST(NvmlProbe, WhatALibraryWithoutOptionalFunctionsCannotSayIsAbsent) {
  const auto gpus = ListOf("bare");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].type, "A100");
  EXPECT_EQ(gpus[1].memory_bytes, std::int64_t{80} << 30);
  EXPECT_EQ(gpus[1].pci_bus_id, "");
  EXPECT_EQ(gpus[1].minor, std::nullopt);
  EXPECT_EQ(gpus[1].numa, std::nullopt);
  EXPECT_EQ(gpus[1].pcie_peers, std::nullopt);
  EXPECT_EQ(gpus[1].fault, "");
  NvmlProbe probe(Stub("bare"));
  const auto sample = probe.Sample(1);
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->gpu_percent, std::nullopt);
  EXPECT_EQ(sample->power_milliwatt, std::nullopt);
  EXPECT_EQ(sample->memory_used_bytes, std::int64_t{3} << 30);
}

TEST(NvmlProbe, SamplesWhatAGpuIsDoing) {
  NvmlProbe probe(Stub("eight"));
  const auto sample = probe.Sample(4);
  ASSERT_TRUE(sample.has_value()) << sample.error().message;
  EXPECT_EQ(sample->gpu_percent, 40);
  EXPECT_EQ(sample->memory_percent, 5);
  EXPECT_EQ(sample->memory_used_bytes, std::int64_t{3} << 30);
  EXPECT_EQ(sample->memory_total_bytes, std::int64_t{80} << 30);
  EXPECT_EQ(sample->temperature_celsius, 41);
  EXPECT_EQ(sample->power_milliwatt, 123'456);
  EXPECT_EQ(sample->energy_millijoule, 5'000'000'000);
  EXPECT_EQ(sample->sm_clock_mhz, 1980);
  EXPECT_EQ(sample->memory_clock_mhz, 2619);
}

TEST(NvmlProbe, AGpuThatDoesNotExistIsToldFromOneThatDoesNotAnswer) {
  NvmlProbe probe(Stub("sick"));
  EXPECT_EQ(probe.Sample(9).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(probe.Sample(-1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(probe.Sample(2).error().code, ErrorCode::kUnavailable);
}

TEST(NvmlProbe, WithoutALibraryThereAreNoGpus) {
  NvmlProbe probe({.libraries = {"libmuster-no-such.so.1"}});
  const auto listed = probe.List();
  ASSERT_TRUE(listed.has_value());
  EXPECT_THAT(*listed, IsEmpty());
  EXPECT_EQ(probe.Sample(0).error().code, ErrorCode::kNotFound);
}

TEST(NvmlProbe, ADriverThatDoesNotAnswerIsAnError) {
  NvmlProbe probe(Stub("broken"));
  EXPECT_EQ(probe.List().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(probe.Sample(0).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace muster::device

#include "device/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/tree.h"

namespace muster::device {
namespace {

using testing::ElementsAre;

// Two sockets of two cores with two threads each; the kernel calls their NUMA nodes 0 and 2, and 1
// has memory only. Socket 0 has two GPUs and a card at one PCIe switch, socket 1 a GPU and a card.
HostOptions TwoSockets() {
  auto xml = ReadFile(SourceTree() + "/src/device/testdata/two_sockets.xml");
  EXPECT_TRUE(xml.has_value());
  return {.hwloc_xml = xml.value_or(""), .affinity = {}};
}

TEST(Host, ThisMachineHasCoresMemoryAndNumaNodes) {
  const auto host = ReadHost({});
  ASSERT_TRUE(host.has_value()) << host.error().message;
  EXPECT_GE(host->numa.size(), 1U);
  EXPECT_GE(host->UsableCores(), 1);
  EXPECT_GE(host->PresentCores(), host->UsableCores());
  EXPECT_GT(host->memory_bytes, std::int64_t{64} << 20);
  for (const auto& nic : host->nics) EXPECT_NE(nic.name, "lo");
}

TEST(Host, NumaNodesAreThoseWithCoresAndSiblingsStandTogether) {
  const auto host = ReadHost(TwoSockets());
  ASSERT_TRUE(host.has_value()) << host.error().message;
  ASSERT_EQ(host->numa.size(), 2U);
  EXPECT_EQ(host->numa[0].os_index, 0);
  EXPECT_EQ(host->numa[1].os_index, 2);
  EXPECT_THAT(host->numa[0].cores, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(host->numa[1].cores, ElementsAre(4, 6, 5, 7));
  EXPECT_EQ(host->memory_bytes, std::int64_t{128} << 30);
}

TEST(Host, CoresOutsideTheAffinityMaskAreNotUsable) {
  auto options = TwoSockets();
  options.affinity = {1, 2};
  const auto host = ReadHost(options);
  ASSERT_TRUE(host.has_value());
  EXPECT_THAT(host->numa[0].cores, ElementsAre(2, 1));
  EXPECT_TRUE(host->numa[1].cores.empty());
  EXPECT_EQ(host->UsableCores(), 2);
  EXPECT_EQ(host->PresentCores(), 8);
}

TEST(Host, DevicesKnowTheirNumaNodeAndTheirSwitch) {
  const auto host = ReadHost(TwoSockets());
  ASSERT_TRUE(host.has_value());
  ASSERT_TRUE(host->pci.contains("0000:1b:00.0"));
  ASSERT_TRUE(host->pci.contains("0000:6b:00.0"));
  EXPECT_EQ(host->pci.at("0000:1b:00.0").numa, 0);
  EXPECT_EQ(host->pci.at("0000:1b:00.0").pcie_switch, "0000:18:00.0");
  EXPECT_EQ(host->pci.at("0000:2b:00.0").pcie_switch, "0000:18:00.0");
  EXPECT_EQ(host->pci.at("0000:6b:00.0").numa, 1);
  EXPECT_EQ(host->pci.at("0000:6b:00.0").pcie_switch, "");
}

TEST(Host, NetworkCardsComeWithTheirNumaNodeAndWithoutVirtualInterfaces) {
  const auto host = ReadHost(TwoSockets());
  ASSERT_TRUE(host.has_value());
  EXPECT_THAT(host->nics,
              ElementsAre(model::Nic{"eth0", 1}, model::Nic{"eth9", 0}, model::Nic{"ibp44s0", 0}));
}

TEST(Host, AnInterfaceIsVirtualByItsName) {
  for (const char* name : {"lo", "veth12ab", "docker0", "br-1234", "cali0", "tap0", "virbr0"}) {
    EXPECT_TRUE(IsVirtualInterface(name)) << name;
  }
  for (const char* name : {"eth0", "enp1s0f0np0", "ib0", "bond0", "wlan0", "lom1", "ens5"}) {
    EXPECT_FALSE(IsVirtualInterface(name)) << name;
  }
}

TEST(Host, ADescriptionThatIsNoXmlIsAnError) {
  const auto host = ReadHost({.hwloc_xml = "nonsense", .affinity = {}});
  ASSERT_FALSE(host.has_value());
}

}  // namespace
}  // namespace muster::device

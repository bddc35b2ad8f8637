#include "engine/devices.h"

#include <gtest/gtest.h>

#include <bit>

namespace muster::engine {
namespace {

// Eight GPUs: islands of four, switches of two, sockets of four; a NIC on the second socket.
model::Node Server() {
  model::Node node;
  for (int i = 0; i < 8; ++i) {
    model::Gpu gpu;
    gpu.nvlink_island = i / 4;
    gpu.pcie_switch = i / 2;
    gpu.numa = i / 4;
    node.gpus.push_back(gpu);
  }
  node.nics.push_back({"nic0", 1});
  return node;
}

// No NVLink: switches of two, sockets of four.
model::Node PcieServer() {
  auto node = Server();
  for (auto& gpu : node.gpus) gpu.nvlink_island = -1;
  return node;
}

std::uint64_t Choose(const DeviceLayout& layout, std::uint64_t candidates, std::uint32_t count,
                     bool gang) {
  DeviceRules rules;
  rules.gang = gang;
  return ChooseDevices(layout, candidates, count, rules);
}

TEST(Devices, TakesExactlyAsManyAsAskedForOutOfTheCandidates) {
  const auto layout = DeviceLayout::Of(Server());
  for (std::uint64_t candidates = 1; candidates < 256; ++candidates) {
    for (std::uint32_t count = 1; count <= static_cast<std::uint32_t>(std::popcount(candidates));
         ++count) {
      for (const bool gang : {false, true}) {
        const auto chosen = Choose(layout, candidates, count, gang);
        EXPECT_EQ(static_cast<std::uint32_t>(std::popcount(chosen)), count);
        EXPECT_EQ(chosen & ~candidates, 0U);
      }
    }
  }
}

TEST(Devices, StaysInsideOneIslandWhereThatIsPossible) {
  const auto layout = DeviceLayout::Of(Server());
  EXPECT_EQ(Choose(layout, 0b1111'0011, 4, true), 0b1111'0000U);
  EXPECT_EQ(LinkDistance(layout, Choose(layout, 0b1110'0111, 3, true)), 0);
}

TEST(Devices, LeavesTheWholeIslandToALargerWorker) {
  const auto layout = DeviceLayout::Of(Server());
  EXPECT_EQ(Choose(layout, 0b1111'0011, 2, false), 0b0000'0011U);
  EXPECT_EQ(Choose(layout, 0b1111'0001, 1, false), 0b0000'0001U);
}

TEST(Devices, PrefersOneSwitchInsideTheIsland) {
  const auto layout = DeviceLayout::Of(Server());
  EXPECT_EQ(Choose(layout, 0b0000'1101, 2, true), 0b0000'1100U);
}

TEST(Devices, WithoutNvlinkTakesOneSwitchThenOneSocket) {
  const auto layout = DeviceLayout::Of(PcieServer());
  EXPECT_EQ(Choose(layout, 0b0110'1101, 2, true), 0b0000'1100U);
  EXPECT_EQ(Choose(layout, 0b0111'0101, 3, true), 0b0111'0000U);
}

TEST(Devices, SpansAsFewIslandsAsItCan) {
  const auto layout = DeviceLayout::Of(Server());
  const auto chosen = Choose(layout, 0b1111'0011, 5, true);
  EXPECT_EQ(chosen & 0b1111'0000U, 0b1111'0000U);
  EXPECT_EQ(LinkDistance(layout, chosen), 3);
}

TEST(Devices, GivesTheSocketWithTheNicToGangs) {
  const auto layout = DeviceLayout::Of(Server());
  EXPECT_EQ(Choose(layout, 0xFF, 4, true), 0b1111'0000U);
  EXPECT_EQ(Choose(layout, 0xFF, 4, false), 0b0000'1111U);
}

TEST(Devices, MeasureTheWorstLinkBetweenThem) {
  const auto layout = DeviceLayout::Of(PcieServer());
  EXPECT_EQ(LinkDistance(layout, 0b1), 0);
  EXPECT_EQ(LinkDistance(layout, 0b11), 1);
  EXPECT_EQ(LinkDistance(layout, 0b101), 2);
  EXPECT_EQ(LinkDistance(layout, 0b1'0001), 3);
}

TEST(Devices, TakesTheLowestWhereTheRulesAreOff) {
  const auto layout = DeviceLayout::Of(Server());
  DeviceRules rules;
  rules.links = false;
  EXPECT_EQ(ChooseDevices(layout, 0b1111'0001, 2, rules), 0b0001'0001U);
  rules = {};
  rules.spare_islands = false;
  EXPECT_EQ(ChooseDevices(layout, 0b0011'1111, 1, rules), 0b0000'0001U);
}

TEST(Devices, TakesTheLowestWhereAllAreAlike) {
  model::Node node;
  node.gpus.resize(4);
  const auto layout = DeviceLayout::Of(node);
  EXPECT_TRUE(layout.flat);
  EXPECT_EQ(Choose(layout, 0b1110, 2, false), 0b0110U);
}

}  // namespace
}  // namespace muster::engine

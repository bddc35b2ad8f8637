#include "engine/nodes.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace muster::engine {
namespace {

constexpr std::int64_t kMemory = 1000;

model::Node Machine(const std::string& type, int gpus) {
  model::Node node;
  node.name = "n";
  model::Gpu gpu;
  gpu.type = type;
  gpu.memory_bytes = kMemory;
  node.gpus.assign(static_cast<std::size_t>(gpus), gpu);
  node.cpu_milli = 8 * kMilli;
  node.memory_bytes = 100;
  node.max_workers = 4;
  return node;
}

Take Whole(std::uint64_t devices) {
  Take take;
  take.devices = devices;
  take.units = kMemory;
  take.whole = true;
  take.host[kHostCpu] = kMilli;
  return take;
}

Take Share(std::uint64_t devices, std::int64_t units) {
  Take take = Whole(devices);
  take.units = units;
  take.whole = false;
  return take;
}

TEST(NodeTable, MakesOneBankForEachGpuTypeOfANode) {
  NodeTable nodes;
  auto mixed = Machine("A", 2);
  mixed.gpus.push_back(Machine("B", 1).gpus[0]);
  const NodeId id = nodes.Add(mixed);
  EXPECT_EQ(nodes.node(id).bank_count, 2U);
  EXPECT_EQ(nodes.bank(nodes.BankOfDevices(id, 0b100)).mask, 0b100U);
  EXPECT_EQ(nodes.usable_gpus(nodes.FindType("A")), 2);
  EXPECT_EQ(nodes.FindType("C"), kNone);
  const NodeId bare = nodes.Add(Machine("", 0));
  EXPECT_EQ(nodes.node(bare).bank_count, 1U) << "for workers without GPUs";
}

TEST(NodeTable, IndexesBanksByUnoccupiedGpus) {
  NodeTable nodes;
  nodes.Add(Machine("A", 4));
  const auto type = nodes.FindType("A");
  EXPECT_EQ(nodes.WithUnoccupied(type, 4, Mode::kFree).Next(0), 0U);
  nodes.Occupy(0, Whole(0b11), kInAll, +1);
  EXPECT_EQ(nodes.WithUnoccupied(type, 4, Mode::kFree).Next(0), kNone);
  EXPECT_EQ(nodes.WithUnoccupied(type, 2, Mode::kFree).Next(0), 0U);
  nodes.Occupy(0, Whole(0b11), kInAll, -1);
  EXPECT_EQ(nodes.WithUnoccupied(type, 4, Mode::kFuture).Next(0), 0U);
}

TEST(NodeTable, KeepsTheModesApart) {
  NodeTable nodes;
  nodes.Add(Machine("A", 2));
  nodes.Occupy(0, Whole(0b01), In(Mode::kFree), +1);
  EXPECT_EQ(nodes.bank(0).unoccupied[static_cast<std::size_t>(Mode::kFree)], 0b10U);
  EXPECT_EQ(nodes.bank(0).unoccupied[static_cast<std::size_t>(Mode::kFuture)], 0b11U);
  EXPECT_EQ(nodes.FreeMilli(0, Mode::kFree), kMilli);
  EXPECT_EQ(nodes.FreeMilli(0, Mode::kFuture), 2 * kMilli);
  EXPECT_EQ(nodes.HostFree(0, kHostCpu, Mode::kFree), 7 * kMilli);
  EXPECT_EQ(nodes.HostFree(0, kHostCpu, Mode::kEmptied), 8 * kMilli);
}

TEST(NodeTable, MeasuresTheRoomOnSharedGpus) {
  NodeTable nodes;
  nodes.Add(Machine("A", 2));
  const auto free = static_cast<std::size_t>(Mode::kFree);
  EXPECT_EQ(nodes.bank(0).max_room[free], 0) << "an unoccupied GPU is not shared";
  nodes.Occupy(0, Share(0b01, 300), kInAll, +1);
  nodes.Occupy(0, Share(0b10, 600), kInAll, +1);
  EXPECT_EQ(nodes.bank(0).max_room[free], 700);
  EXPECT_EQ(nodes.Room(0, 1, Mode::kFree), 400);
  EXPECT_EQ(nodes.FreeMilli(0, Mode::kFree), 1100);
  nodes.Occupy(0, Share(0b01, 300), kInAll, -1);
  EXPECT_EQ(nodes.bank(0).max_room[free], 400);
}

TEST(NodeTable, MeasuresRoomsAnewWhenAWholeWorkerLeavesASharedGpu) {
  NodeTable nodes;
  nodes.Add(Machine("A", 1));
  const auto free = static_cast<std::size_t>(Mode::kFree);
  nodes.Occupy(0, Share(0b1, 300), kInAll, +1);
  nodes.Occupy(0, Whole(0b1), kInAll, +1);  // promised the GPU that the share is leaving
  nodes.Occupy(0, Whole(0b1), kInAll, -1);
  EXPECT_EQ(nodes.bank(0).max_room[free], 700);
  EXPECT_EQ(nodes.FreeMilli(0, Mode::kFree), 700);
}

TEST(NodeTable, RoomClassesAreSixteenthsRoundedUp) {
  EXPECT_EQ(NodeTable::RoomClass(0, 1600), 0U);
  EXPECT_EQ(NodeTable::RoomClass(1, 1600), 1U);
  EXPECT_EQ(NodeTable::RoomClass(100, 1600), 1U);
  EXPECT_EQ(NodeTable::RoomClass(101, 1600), 2U);
  EXPECT_EQ(NodeTable::RoomClass(1600, 1600), 16U);
}

TEST(NodeTable, OffersNothingOfANodeThatIsDownOrCordoned) {
  NodeTable nodes;
  nodes.Add(Machine("A", 2));
  const auto offered = [&] { return nodes.WithUnoccupied(0, 2, Mode::kFree).Next(0) == 0; };
  EXPECT_TRUE(offered());
  nodes.SetUp(0, false);
  EXPECT_FALSE(offered());
  EXPECT_EQ(nodes.usable_gpus(), 0);
  EXPECT_EQ(nodes.FreeMilli(0, Mode::kFree), 0);
  nodes.SetUp(0, true);
  nodes.SetCordoned(0, true, false);
  EXPECT_FALSE(offered());
  nodes.SetCordoned(0, false, false);
  EXPECT_TRUE(offered());
  EXPECT_EQ(nodes.usable_gpus(), 2);
  EXPECT_EQ(nodes.FreeMilli(0, Mode::kFree), 2 * kMilli);
}

TEST(NodeTable, CountsCoresMemoryCountablesAndWorkers) {
  NodeTable nodes({"fpga"});
  auto machine = Machine("A", 0);
  machine.other["fpga"] = 1;
  nodes.Add(machine);
  HostVec need{};
  need[kHostCpu] = 8 * kMilli;
  need[kFirstHostOther] = 1;
  EXPECT_TRUE(nodes.HostFits(0, need, Mode::kFree));
  need[kFirstHostOther] = 2;
  EXPECT_FALSE(nodes.HostFits(0, need, Mode::kFree));
  Take small;
  for (int i = 0; i < 4; ++i) nodes.Occupy(0, small, kInAll, +1);
  EXPECT_FALSE(nodes.HostFits(0, HostVec{}, Mode::kFree)) << "four workers are the most";
}

TEST(NodeTable, FindsTheFullestNodeByCoresOnceAsked) {
  NodeTable nodes;
  nodes.Add(Machine("A", 1));
  nodes.Add(Machine("A", 1));
  nodes.KeepCoreIndex();
  nodes.Occupy(1, Whole(0b1), kInAll, +1);
  const auto& by_cores = nodes.FullestByCores(true, Mode::kFree);
  ASSERT_EQ(by_cores.size(), 2U);
  EXPECT_EQ(by_cores.begin()->second, 1U);
  EXPECT_TRUE(nodes.FullestByCores(false, Mode::kFree).empty());
}

TEST(NodeTable, LogsEveryChangeForOtherIndexes) {
  NodeTable nodes;
  nodes.Add(Machine("A", 2));
  const BankLog& log = nodes.log(Mode::kFree);
  const auto start = log.end();
  nodes.Occupy(0, Whole(0b1), kInAll, +1);
  nodes.Occupy(0, Whole(0b10), kInAll, +1);
  ASSERT_EQ(log.end(), start + 2);
  EXPECT_EQ(log.at(start), 0U);
  EXPECT_TRUE(log.superseded(start));
  EXPECT_FALSE(log.superseded(start + 1));
}

}  // namespace
}  // namespace muster::engine

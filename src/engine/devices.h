// Which GPUs of a node a worker gets.
//
// GPUs that talk to each other most closely: one NVLink island before one PCIe switch before one
// socket before anything. Among parts that are large enough the one with the fewest GPUs left is
// taken, so that a small worker does not break an island that a larger one needs; among equals,
// workers of gangs take a part with a NIC on its socket and single workers leave it. Costs a few
// mask operations.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/node.h"

namespace muster::engine {

// The GPUs of a node by what they share, closest kind first. Nodes that are alike share one.
struct DeviceLayout {
  std::array<std::vector<std::uint64_t>, 3> parts;  // NVLink islands, PCIe switches, sockets
  std::uint64_t near_nic = 0;                       // GPUs whose socket has a NIC
  bool flat = true;                                 // nothing to choose by

  friend bool operator==(const DeviceLayout&, const DeviceLayout&) = default;
  static DeviceLayout Of(const model::Node& node);
};

struct DeviceRules {
  bool links = true;          // closely linked GPUs; else the lowest
  bool spare_islands = true;  // the part with the fewest GPUs left; else the first
  bool near_nic = true;       // NICs break ties
  bool gang = false;          // the worker talks to others
};

// `count` of `candidates`, which hold at least that many.
std::uint64_t ChooseDevices(const DeviceLayout& layout, std::uint64_t candidates,
                            std::uint32_t count, const DeviceRules& rules);

// How much a choice hurts, to compare nodes that are equally full: first by link distance, then by
// the GPUs that are left in the part which it breaks.
std::uint32_t BreakageOf(const DeviceLayout& layout, std::uint64_t candidates,
                         std::uint64_t chosen);

// 0: one GPU or one island, 1: one switch, 2: one socket, 3: across.
int LinkDistance(const DeviceLayout& layout, std::uint64_t devices);

}  // namespace muster::engine

#include "engine/devices.h"

#include <algorithm>
#include <bit>
#include <map>

namespace muster::engine {
namespace {

std::uint32_t Count(std::uint64_t mask) { return static_cast<std::uint32_t>(std::popcount(mask)); }

std::uint64_t Lowest(std::uint64_t mask, std::uint32_t count) {
  std::uint64_t out = 0;
  for (; count > 0; --count) {
    out |= mask & (~mask + 1);
    mask &= mask - 1;
  }
  return out;
}

class Chooser {
 public:
  Chooser(const DeviceLayout& layout, const DeviceRules& rules) : layout_(layout), rules_(rules) {}

  std::uint64_t Choose(std::uint64_t candidates, std::uint32_t count, std::size_t kind) const {
    if (Count(candidates) == count) return candidates;
    for (std::size_t k = kind; k < layout_.parts.size(); ++k) {
      if (const auto part = TightestPart(k, candidates, count); part != 0) {
        return Choose(part, count, k + 1);
      }
    }
    for (std::size_t k = layout_.parts.size(); k-- > kind;) {
      if (!layout_.parts[k].empty()) return Span(k, candidates, count);
    }
    return Lowest(candidates, count);
  }

 private:
  // The candidates of the part that has enough of them and the fewest left over; 0: none has.
  std::uint64_t TightestPart(std::size_t kind, std::uint64_t candidates,
                             std::uint32_t count) const {
    std::uint64_t best = 0;
    for (const auto part : layout_.parts[kind]) {
      const auto here = part & candidates;
      if (Count(here) < count) continue;
      if (best == 0 || (rules_.spare_islands && Count(here) < Count(best)) ||
          (Count(here) == Count(best) && NicMatches(here) && !NicMatches(best))) {
        best = here;
      }
    }
    return best;
  }

  bool NicMatches(std::uint64_t part) const {
    return rules_.near_nic && ((part & layout_.near_nic) != 0) == rules_.gang;
  }

  // No part is large enough: as few of the widest parts as possible, fullest first.
  std::uint64_t Span(std::size_t kind, std::uint64_t candidates, std::uint32_t count) const {
    std::uint64_t out = 0;
    while (count > 0) {
      std::uint64_t largest = 0;
      for (const auto part : layout_.parts[kind]) {
        const auto here = part & candidates & ~out;
        if (Count(here) > Count(largest)) largest = here;
      }
      if (largest == 0) return out | Lowest(candidates & ~out, count);
      const auto taken = Count(largest) <= count ? largest : Choose(largest, count, 0);
      out |= taken;
      count -= Count(taken);
    }
    return out;
  }

  const DeviceLayout& layout_;
  DeviceRules rules_;
};

}  // namespace

DeviceLayout DeviceLayout::Of(const model::Node& node) {
  DeviceLayout layout;
  std::array<std::map<int, std::uint64_t>, 3> parts;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const auto& gpu = node.gpus[i];
    const std::uint64_t bit = 1ULL << i;
    if (gpu.nvlink_island >= 0) parts[0][gpu.nvlink_island] |= bit;
    if (gpu.pcie_switch >= 0) parts[1][gpu.pcie_switch] |= bit;
    parts[2][gpu.numa] |= bit;
    const auto near = [&](const model::Nic& nic) { return nic.numa == gpu.numa; };
    if (std::any_of(node.nics.begin(), node.nics.end(), near)) layout.near_nic |= bit;
  }
  for (std::size_t kind = 0; kind < parts.size(); ++kind) {
    for (const auto& [id, mask] : parts[kind]) layout.parts[kind].push_back(mask);
    layout.flat &= layout.parts[kind].size() <= 1;
  }
  return layout;
}

std::uint64_t ChooseDevices(const DeviceLayout& layout, std::uint64_t candidates,
                            std::uint32_t count, const DeviceRules& rules) {
  if (layout.flat || !rules.links) return Lowest(candidates, count);
  return Chooser(layout, rules).Choose(candidates, count, 0);
}

std::uint32_t BreakageOf(const DeviceLayout& layout, std::uint64_t candidates,
                         std::uint64_t chosen) {
  const auto distance = static_cast<std::uint32_t>(LinkDistance(layout, chosen));
  std::uint32_t left = 0;
  for (const auto& parts : layout.parts) {
    bool found = false;
    for (const auto part : parts) {
      if ((chosen & ~part) != 0) continue;
      left = Count(part & candidates) - Count(chosen);
      found = true;
    }
    if (found) break;
  }
  return distance * 64 + left;
}

int LinkDistance(const DeviceLayout& layout, std::uint64_t devices) {
  if (Count(devices) <= 1) return 0;
  for (std::size_t kind = 0; kind < layout.parts.size(); ++kind) {
    for (const auto part : layout.parts[kind]) {
      if ((devices & ~part) == 0) return static_cast<int>(kind);
    }
  }
  return 3;
}

}  // namespace muster::engine

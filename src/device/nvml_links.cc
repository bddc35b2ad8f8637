#include "device/nvml_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::device {
namespace {

constexpr const char* kHiddenSwitch = "hidden switch";

// The address that the link ends at; empty when it is not known or of no use.
std::string FarEnd(const NvmlApi& api, NvmlDevice device, unsigned link) {
  NvmlPciInfo pci;
  const bool told = Ask(api.nvlink_remote_pci, device, link, &pci) == kNvmlSuccess;
  if (told && (pci.domain != 0 || pci.bus != 0 || pci.device != 0)) return BusId(pci);
  int type = -1;
  if (Ask(api.nvlink_remote_type, device, link, &type) != kNvmlSuccess) return {};
  return type == kNvmlRemoteSwitch ? kHiddenSwitch : "";
}

void ReadNvlink(const NvmlApi& api, const std::vector<NvmlDevice>& handles,
                std::vector<GpuFacts>& gpus) {
  std::map<std::string, std::set<std::size_t>> at;  // who is at, or has a link to, an address
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!gpus[i].pci_bus_id.empty()) at[gpus[i].pci_bus_id].insert(i);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (unsigned link = 0; handles[i] != nullptr && link < kNvmlMaxLinks; ++link) {
      int active = 0;
      const auto code = Ask(api.nvlink_state, handles[i], link, &active);
      if (code == kNvmlInvalidArgument) break;  // behind the last link
      if (code != kNvmlSuccess || active == 0) continue;
      ++gpus[i].nvlink_links;
      const auto end = FarEnd(api, handles[i], link);
      if (!end.empty()) at[end].insert(i);
    }
  }
  std::vector<std::set<int>> peers(gpus.size());
  for (const auto& [address, members] : at) {
    // A GPU's own address joins its neighbours to it, not to each other.
    const auto owner = std::find_if(gpus.begin(), gpus.end(), [&id = address](const GpuFacts& gpu) {
      return gpu.pci_bus_id == id;
    });
    for (const auto one : members) {
      for (const auto other : members) {
        const bool joined = owner == gpus.end() || gpus[one].index == owner->index ||
                            gpus[other].index == owner->index;
        if (one != other && joined) peers[one].insert(gpus[other].index);
      }
    }
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].nvlink_peers.assign(peers[i].begin(), peers[i].end());
  }
}

void ReadPcie(const NvmlApi& api, const std::vector<NvmlDevice>& handles,
              std::vector<GpuFacts>& gpus) {
  std::vector<std::set<int>> peers(gpus.size());
  std::vector<bool> known(gpus.size(), api.common_ancestor != nullptr);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      if (handles[i] == nullptr || handles[j] == nullptr) continue;
      int level = 0;
      if (Ask(api.common_ancestor, handles[i], handles[j], &level) != kNvmlSuccess) {
        known[i] = known[j] = false;
      } else if (level <= kNvmlAncestorSingleSwitch) {
        peers[i].insert(gpus[j].index);
        peers[j].insert(gpus[i].index);
      }
    }
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (handles[i] == nullptr || !known[i]) continue;
    gpus[i].pcie_peers.emplace(peers[i].begin(), peers[i].end());
  }
}

}  // namespace

std::string BusId(const NvmlPciInfo& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

void ReadLinks(const NvmlApi& api, const std::vector<NvmlDevice>& handles,
               std::vector<GpuFacts>& gpus) {
  ReadNvlink(api, handles, gpus);
  ReadPcie(api, handles, gpus);
}

}  // namespace muster::device

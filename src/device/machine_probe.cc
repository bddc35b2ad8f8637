#include "device/machine_probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/units.h"
#include "device/nvml_probe.h"
#include "model/vocabulary.h"

namespace muster::device {
namespace {

constexpr std::int64_t kVirtualMemoryBytes = std::int64_t{16} << 30;
constexpr std::int64_t kVirtualCoresMilli = 4 * kMilli;

// The host name may hold what a name of ours may not.
std::string HostName() {
  std::array<char, 256> text = {};
  if (gethostname(text.data(), text.size() - 1) != 0) return "localhost";
  std::string name = text.data();
  for (auto& c : name) {
    if (!model::IsName(std::string("a") + c)) c = '-';
  }
  return model::IsName(name) ? name : "localhost";
}

void CountCores(const Host& host, const CgroupLimits& limits, Discovered& found) {
  const auto present = host.PresentCores();
  const auto usable = host.UsableCores();
  found.node.cpu_milli = usable * kMilli;
  if (limits.cpu_milli && limits.cpu_milli->amount < found.node.cpu_milli) {
    found.node.cpu_milli = limits.cpu_milli->amount;
    found.notes.push_back(fmt::format("{} of {} cores: the control group's quota ({})",
                                      FormatMilli(found.node.cpu_milli), present,
                                      limits.cpu_milli->file));
  } else if (usable < present) {
    found.notes.push_back(
        fmt::format("{} of {} cores: the affinity mask of this process", usable, present));
  }
  for (std::size_t i = 0; i < host.numa.size(); ++i) {
    found.cores_of_numa.push_back(host.numa[i].cores);
    if (!host.numa[i].cores.empty()) continue;
    found.notes.push_back(fmt::format("NUMA node {} has no core that this process may use", i));
  }
}

void CountMemory(const Host& host, const CgroupLimits& limits, Discovered& found) {
  found.node.memory_bytes = host.memory_bytes;
  const auto& limit = limits.memory_bytes;
  if (!limit || (host.memory_bytes > 0 && limit->amount >= host.memory_bytes)) return;
  found.node.memory_bytes = limit->amount;
  found.notes.push_back(fmt::format("{} of {} memory: the control group's limit ({})",
                                    FormatBytes(limit->amount), FormatBytes(host.memory_bytes),
                                    limit->file));
}

// Numbers for the groups that peers form: equal for two entries that are joined over any number of
// steps, counted from 0 by first member.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count), size_(count, 1) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  void Join(std::size_t a, std::size_t b) {
    const auto low = std::min(Find(a), Find(b)), high = std::max(Find(a), Find(b));
    if (low == high) return;
    parent_[high] = low;
    size_[low] += size_[high];
  }
  std::size_t SizeOf(std::size_t entry) { return size_[Find(entry)]; }
  std::size_t Find(std::size_t entry) {
    while (parent_[entry] != entry) entry = parent_[entry] = parent_[parent_[entry]];
    return entry;
  }

 private:
  std::vector<std::size_t> parent_;
  std::vector<std::size_t> size_;
};

void JoinPeers(const std::vector<GpuFacts>& gpus, std::size_t i, const std::vector<int>& peers,
               Groups& groups) {
  for (std::size_t j = 0; j < gpus.size(); ++j) {
    if (std::find(peers.begin(), peers.end(), gpus[j].index) != peers.end()) groups.Join(i, j);
  }
}

void NumberIslands(Discovered& found) {
  Groups groups(found.gpus.size());
  for (std::size_t i = 0; i < found.gpus.size(); ++i) {
    JoinPeers(found.gpus, i, found.gpus[i].nvlink_peers, groups);
  }
  std::map<std::size_t, int> numbers;
  for (std::size_t i = 0; i < found.gpus.size(); ++i) {
    if (groups.SizeOf(i) < 2) continue;  // links to nowhere join nothing
    const auto [entry, fresh] =
        numbers.try_emplace(groups.Find(i), static_cast<int>(numbers.size()));
    found.node.gpus[i].nvlink_island = entry->second;
  }
}

// By the driver where it answers for all GPUs, else by the bridges above them.
void NumberSwitches(const Host& host, Discovered& found) {
  Groups groups(found.gpus.size());
  const bool told = std::all_of(found.gpus.begin(), found.gpus.end(),
                                [](const GpuFacts& gpu) { return gpu.pcie_peers.has_value(); });
  std::map<std::string, int> numbers;
  const auto number = [&](std::size_t i, const std::string& key) {
    const auto [entry, fresh] = numbers.try_emplace(key, static_cast<int>(numbers.size()));
    found.node.gpus[i].pcie_switch = entry->second;
  };
  for (std::size_t i = 0; told && i < found.gpus.size(); ++i) {
    JoinPeers(found.gpus, i, *found.gpus[i].pcie_peers, groups);
  }
  for (std::size_t i = 0; i < found.gpus.size(); ++i) {
    const auto place = host.pci.find(found.gpus[i].pci_bus_id);
    if (told) {
      number(i, std::to_string(groups.Find(i)));
    } else if (place != host.pci.end() && !place->second.pcie_switch.empty()) {
      number(i, place->second.pcie_switch);
    }
  }
}

std::optional<int> NumaOf(const Host& host, const GpuFacts& gpu) {
  const auto place = host.pci.find(gpu.pci_bus_id);
  if (place != host.pci.end() && place->second.numa) return place->second.numa;
  for (std::size_t i = 0; i < host.numa.size(); ++i) {
    if (gpu.numa == host.numa[i].os_index) return static_cast<int>(i);
  }
  if (host.numa.size() == 1) return 0;
  return std::nullopt;
}

void AddRealGpus(const Host& host, GpuProbe& probe, Discovered& found) {
  auto listed = probe.List();
  if (!listed) {
    found.notes.push_back("no GPUs: " + Describe(listed.error()));
    return;
  }
  for (auto& facts : *listed) {
    if (!facts.fault.empty()) {
      found.notes.push_back(fmt::format("GPU {} is left out: {}", facts.index, facts.fault));
      continue;
    }
    const auto numa = NumaOf(host, facts);
    if (!numa) {
      found.notes.push_back(
          fmt::format("GPU {}: its NUMA node is not known, 0 is taken", facts.index));
    }
    model::Gpu gpu;
    gpu.type = facts.type;
    gpu.memory_bytes = facts.memory_bytes;
    gpu.numa = numa.value_or(0);
    found.node.gpus.push_back(std::move(gpu));
    found.gpus.push_back(std::move(facts));
  }
  NumberIslands(found);
  NumberSwitches(host, found);
}

void AddVirtualGpus(const model::VirtualGpus& wanted, GpuProbe& probe, Discovered& found) {
  auto& node = found.node;
  model::Gpu gpu;
  gpu.type = wanted.type.empty() ? std::string(model::kVirtualGpuType) : wanted.type;
  gpu.memory_bytes = wanted.memory_bytes > 0 ? wanted.memory_bytes : kVirtualMemoryBytes;
  const auto cores = wanted.cores_each_milli > 0 ? wanted.cores_each_milli : kVirtualCoresMilli;
  for (std::int64_t i = 0; i < wanted.count; ++i) {
    gpu.numa = static_cast<int>(i * node.sockets / wanted.count);
    node.gpus.push_back(gpu);
  }
  node.cpu_milli = std::max(node.cpu_milli, wanted.count * cores);
  node.memory_bytes = std::max(node.memory_bytes, wanted.count * gpu.memory_bytes);
  node.labels["virtual"] = "true";
  const auto real = probe.List();
  if (real && !real->empty()) {
    found.notes.push_back(
        fmt::format("{} real GPUs are not offered: the pool declares virtual ones", real->size()));
  }
}

}  // namespace

Result<Discovered> DiscoverNode(const DiscoverOptions& options, GpuProbe& probe) {
  const auto host = ReadHost(options.host);
  if (!host) return tl::unexpected(host.error());
  const auto limits = ReadCgroupLimits(options.cgroup);
  Discovered found;
  found.node.name = options.name.empty() ? HostName() : options.name;
  found.node.pool = options.pool;
  found.node.sockets = static_cast<int>(host->numa.size());
  found.node.nics = host->nics;
  CountCores(*host, limits, found);
  CountMemory(*host, limits, found);
  if (options.virtual_gpus.count > 0) {
    AddVirtualGpus(options.virtual_gpus, probe, found);
  } else {
    AddRealGpus(*host, probe, found);
  }
  return found;
}

Result<Discovered> DiscoverNode(const DiscoverOptions& options) {
  NvmlProbe probe(options.nvml);
  return DiscoverNode(options, probe);
}

}  // namespace muster::device

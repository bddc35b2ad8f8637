#include "device/host.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

namespace muster::device {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using BitmapPtr = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Error LoadError(const std::string& what) {
  return {ErrorCode::kUnavailable, "cannot read this machine's topology: " + what,
          "check that /sys and /proc are mounted"};
}

Result<TopologyPtr> Load(const HostOptions& options) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return tl::unexpected(LoadError("hwloc does not start"));
  TopologyPtr topology(raw);
  if (!options.hwloc_xml.empty()) {
    const auto size = static_cast<int>(options.hwloc_xml.size()) + 1;
    if (hwloc_topology_set_xmlbuffer(raw, options.hwloc_xml.c_str(), size) != 0) {
      return Fail(ErrorCode::kInvalid, "the machine description is no hwloc XML");
    }
  }
  // GPUs are asked through their own library: hwloc's plug-ins would start every runtime there is.
  for (const char* component : {"cuda", "nvml", "rsmi", "levelzero", "opencl", "gl"}) {
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) != 0) return tl::unexpected(LoadError("hwloc cannot load it"));
  return topology;
}

BitmapPtr Affinity(hwloc_topology_t topology, const HostOptions& options) {
  BitmapPtr set(hwloc_bitmap_alloc());
  for (const int core : options.affinity) hwloc_bitmap_set(set.get(), static_cast<unsigned>(core));
  if (!options.affinity.empty()) return set;
  const bool here = hwloc_topology_is_thissystem(topology) != 0;
  if (!here || hwloc_get_cpubind(topology, set.get(), HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_fill(set.get());
  }
  return set;
}

// Memory without cores (an expander's, a GPU's) is listed as near to other nodes' cores, so a core
// belongs to the node that covers the fewest, and of those to the first.
hwloc_obj_t HomeOf(hwloc_topology_t topology, hwloc_obj_t unit) {
  hwloc_obj_t home = nullptr, node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (hwloc_bitmap_isset(node->cpuset, unit->os_index) == 0) continue;
    if (home == nullptr || hwloc_bitmap_weight(node->cpuset) < hwloc_bitmap_weight(home->cpuset)) {
      home = node;
    }
  }
  return home;
}

void ReadNuma(hwloc_topology_t topology, hwloc_const_bitmap_t affinity, Host& host) {
  std::map<unsigned, HostNuma> nodes;  // by hwloc's order, which is the kernel's
  hwloc_obj_t unit = nullptr;
  while ((unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)) != nullptr) {
    const auto home = HomeOf(topology, unit);
    if (home == nullptr) continue;
    const auto [entry, fresh] = nodes.try_emplace(home->logical_index);
    auto& node = entry->second;
    if (fresh) {
      node.os_index = static_cast<int>(home->os_index);
      host.memory_bytes += static_cast<std::int64_t>(home->attr->numanode.local_memory);
    }
    ++node.cores_present;
    if (hwloc_bitmap_isset(affinity, unit->os_index) != 0) {
      node.cores.push_back(static_cast<int>(unit->os_index));
    }
  }
  for (auto& [index, node] : nodes) host.numa.push_back(std::move(node));
}

std::optional<int> NumaOf(hwloc_topology_t topology, hwloc_obj_t device,
                          const std::vector<HostNuma>& nodes) {
  const auto around = hwloc_get_non_io_ancestor_obj(topology, device);
  std::optional<int> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (hwloc_bitmap_isset(around->nodeset, static_cast<unsigned>(nodes[i].os_index)) == 0)
      continue;
    if (found) return std::nullopt;
    found = static_cast<int>(i);
  }
  return found;
}

std::string Address(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

bool IsPciBridge(hwloc_obj_t object) {
  return object != nullptr && object->type == HWLOC_OBJ_BRIDGE &&
         object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

// A switch shows itself as a bridge upwards with a bridge per port below it, and hangs on a bridge
// of the root: three in a row above a device. The upward one stands for the switch.
std::string SwitchAbove(hwloc_obj_t device) {
  const auto port = device->parent;
  if (!IsPciBridge(port) || !IsPciBridge(port->parent) || !IsPciBridge(port->parent->parent)) {
    return {};
  }
  return Address(port->parent->attr->bridge.upstream.pci);
}

}  // namespace

int Host::UsableCores() const {
  int cores = 0;
  for (const auto& node : numa) cores += static_cast<int>(node.cores.size());
  return cores;
}

int Host::PresentCores() const {
  int cores = 0;
  for (const auto& node : numa) cores += node.cores_present;
  return cores;
}

bool IsVirtualInterface(std::string_view name) {
  constexpr std::array<std::string_view, 20> kBeginnings = {
      "veth", "docker", "br-", "virbr",  "vnet", "cni",      "flannel",
      "cali", "cilium", "lxc", "tun",    "tap",  "dummy",    "vxlan",
      "wg",   "kube-",  "ifb", "podman", "sit",  "tailscale"};
  return name == "lo" || name == "br0" ||
         std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](std::string_view beginning) {
           return name.substr(0, beginning.size()) == beginning;
         });
}

Result<Host> ReadHost(const HostOptions& options) {
  const auto loaded = Load(options);
  if (!loaded) return tl::unexpected(loaded.error());
  const auto topology = loaded->get();
  const auto affinity = Affinity(topology, options);
  Host host;
  ReadNuma(topology, affinity.get(), host);
  if (host.UsableCores() == 0) return tl::unexpected(LoadError("no core is usable"));
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_pcidev(topology, object)) != nullptr) {
    host.pci[Address(object->attr->pcidev)] = {NumaOf(topology, object, host.numa),
                                               SwitchAbove(object)};
  }
  while ((object = hwloc_get_next_osdev(topology, object)) != nullptr) {
    if (object->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || object->name == nullptr) continue;
    if (IsVirtualInterface(object->name)) continue;
    host.nics.push_back({object->name, NumaOf(topology, object, host.numa).value_or(0)});
  }
  std::sort(host.nics.begin(), host.nics.end(),
            [](const model::Nic& a, const model::Nic& b) { return a.name < b.name; });
  if (options.hwloc_xml.empty() && host.numa.size() == 1) {
    // Memory that a virtual machine was given later is missing from its NUMA node's own count.
    const auto all = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
    host.memory_bytes = std::max(host.memory_bytes, all);
  }
  return host;
}

}  // namespace muster::device

// The host as hwloc sees it: NUMA nodes with their cores, memory, network cards, places on PCI.
//
// A core here is what the kernel schedules on (a hardware thread). A NUMA node counts when it has
// cores; nodes are numbered 0, 1, ... in that order, which need not be the kernel's numbers. Cores
// that the affinity mask of the calling thread excludes are known but not usable. Reading takes
// some ten milliseconds; the result is a value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/node.h"

namespace muster::device {

struct HostOptions {
  std::string hwloc_xml;      // a machine as hwloc exports it, instead of this one
  std::vector<int> affinity;  // instead of the calling thread's; empty: that one's
};

struct HostNuma {
  int os_index = 0;
  std::vector<int> cores;  // usable, by the kernel's numbers; threads of one core are neighbours
  int cores_present = 0;
};

struct PciPlace {
  std::optional<int> numa;  // our number; absent: near to none or to several
  std::string pcie_switch;  // address of the switch it hangs on; empty: none
};

struct Host {
  std::vector<HostNuma> numa;  // at least one
  std::int64_t memory_bytes = 0;
  std::vector<model::Nic> nics;
  std::map<std::string, PciPlace> pci;  // by address, "0000:3b:00.0"

  int UsableCores() const;
  int PresentCores() const;
};

Result<Host> ReadHost(const HostOptions& options);

// lo, veth*, docker*, ...: interfaces that are no card.
bool IsVirtualInterface(std::string_view name);

}  // namespace muster::device

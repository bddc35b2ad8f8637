// What this machine offers to the pool, as a node.
//
// Cores are those that this process may use: the affinity mask and the quota of its control group
// bind it, and so they bind the workers it will start; the note says which of them won. Memory
// likewise. A GPU with a fault is left out and named in the notes; a driver that does not answer is
// a note too, since the machine is still good for work without GPUs. Virtual GPUs replace the real
// ones. Invariant: gpus[i] tells of node.gpus[i], cores_of_numa[n] of NUMA node n of the node.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "device/cgroup_limits.h"
#include "device/gpu_probe.h"
#include "device/host.h"
#include "device/nvml.h"
#include "model/node.h"

namespace muster::device {

struct DiscoverOptions {
  std::string name;  // empty: the host name
  std::string pool;
  model::VirtualGpus virtual_gpus;  // what is zero gets a default: 16Gi and 4 cores each
  NvmlOptions nvml;
  HostOptions host;
  CgroupFiles cgroup;
};

struct Discovered {
  model::Node node;
  std::vector<GpuFacts> gpus;                   // empty for virtual ones
  std::vector<std::vector<int>> cores_of_numa;  // usable, to pin a worker near to its GPUs
  std::vector<std::string> notes;
};

Result<Discovered> DiscoverNode(const DiscoverOptions& options);
Result<Discovered> DiscoverNode(const DiscoverOptions& options, GpuProbe& probe);

}  // namespace muster::device

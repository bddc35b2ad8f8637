// GpuProbe: the port through which the house sees the GPUs of this machine.
//
// List answers what is there and how it is linked, Sample what one GPU is doing now. Discovery and
// the monitor know only this port; NVML stands behind it in production. A figure that the driver
// does not give is absent, never zero. Indexes are the driver's, in the order of the PCI bus; CUDA
// may count otherwise, so a worker is given its GPUs by uuid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::device {

struct GpuFacts {
  int index = 0;
  std::string uuid;
  std::string name;  // as the vendor writes it: "NVIDIA H100 80GB HBM3"
  std::string type;  // as our files write it: "H100"
  std::int64_t memory_bytes = 0;
  std::string pci_bus_id;    // "0000:3b:00.0", as the kernel writes it
  std::optional<int> minor;  // N of /dev/nvidiaN
  std::optional<int> numa;   // the kernel's number of the NUMA node
  int nvlink_links = 0;      // that are up
  std::vector<int> nvlink_peers;
  std::optional<std::vector<int>> pcie_peers;  // under the same PCIe switch; absent: not known
  std::string fault;                           // why no work can be put on it; empty: it can
};

struct GpuSample {
  std::optional<int> gpu_percent;     // of the time, some kernel was resident
  std::optional<int> memory_percent;  // of the time, memory was being read or written
  std::optional<std::int64_t> memory_used_bytes;
  std::optional<std::int64_t> memory_total_bytes;
  std::optional<int> temperature_celsius;
  std::optional<std::int64_t> power_milliwatt;
  std::optional<std::int64_t> energy_millijoule;  // since the driver was loaded
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
};

class GpuProbe {
 public:
  virtual ~GpuProbe() = default;
  // Entry i has index i, GPUs with a fault included. Empty: this machine has none.
  virtual Result<std::vector<GpuFacts>> List() = 0;
  virtual Result<GpuSample> Sample(int index) = 0;
};

}  // namespace muster::device

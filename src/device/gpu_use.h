// GpuUse: how much of a GPU some processes used.
//
// As NVIDIA's driver counts it, process by process, so that jobs that share a GPU are told apart.
// A driver or a GPU that does not count so (MIG, some guests of hypervisors) answers for the whole
// GPU where the asker has all of it, else nothing is known. One question costs some microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "device/nvml_probe.h"

namespace muster::device {

class GpuUse {
 public:
  explicit GpuUse(NvmlOptions options = {}) : probe_(std::move(options)) {}

  // The most any of them used since `seen`, in percent; `seen` is moved on, 0: from the beginning.
  std::optional<int> PercentOf(int index, const std::set<int>& pids, bool whole,
                               std::uint64_t& seen);

 private:
  NvmlProbe probe_;
};

}  // namespace muster::device

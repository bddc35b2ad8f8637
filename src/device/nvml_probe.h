// NvmlProbe: the GPUs of this machine as NVIDIA's library tells of them.
//
// The library is opened at the first question and again after a failure, so a driver that comes up
// late is found without a restart. One GPU that has fallen off the bus or is cut into instances
// (MIG) is listed with its fault and does not hide the others. GPUs that are joined by NVLink
// directly or through a switch are peers. List costs a few calls per link and pair of GPUs.
#pragma once

#include <memory>

#include "device/gpu_probe.h"
#include "device/nvml.h"

namespace muster::device {

class NvmlProbe final : public GpuProbe {
 public:
  explicit NvmlProbe(NvmlOptions options = {}) : options_(std::move(options)) {}

  Result<std::vector<GpuFacts>> List() override;
  Result<GpuSample> Sample(int index) override;
  // For calls beyond this port. Null: no library here.
  Result<const Nvml*> Library();

 private:
  NvmlOptions options_;
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace muster::device

// Which GPUs are joined, by NVLink and by a common PCIe switch.
//
// Two GPUs are NVLink peers when a link of one ends at the other, or when both have a link to the
// same NVLink switch. Where the driver hides a switch's address (virtual machines), all hidden ones
// count as one. Peers are symmetric whatever the driver says of each direction. The cost is that
// of a call per link, and of one per pair of GPUs for PCIe.
#pragma once

#include <string>
#include <vector>

#include "device/gpu_probe.h"
#include "device/nvml_abi.h"

namespace muster::device {

std::string BusId(const NvmlPciInfo& pci);  // "0000:3b:00.0"

// handles[i] belongs to gpus[i]; null handles are left alone.
void ReadLinks(const NvmlApi& api, const std::vector<NvmlDevice>& handles,
               std::vector<GpuFacts>& gpus);

}  // namespace muster::device

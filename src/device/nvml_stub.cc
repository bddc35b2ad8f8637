// A stand-in for libnvidia-ml, for the tests only: the machines that test have no GPU.
//
// Built several times, each time as another machine (MUSTER_STUB_MACHINE), because the code under
// test must open a real shared library. Nothing here is ever installed or opened by the programs.
#include <cstdio>
#include <cstring>

#include "device/nvml_abi.h"

#define STUB_EIGHT 1   // 8 GPUs, NVLink between all, pairs under PCIe switches, NUMA nodes 0 and 2
#define STUB_TWO 2     // 2 GPUs, no NVLink, each under its own switch
#define STUB_BROKEN 3  // the driver does not match the library
#define STUB_BARE 4    // 2 GPUs, a library with nothing but the functions that must be there
#define STUB_SICK 5    // 4 GPUs at a hidden NVLink switch; one is lost, one is cut into instances

namespace muster::device {

struct NvmlDeviceTag {
  unsigned index;
};

namespace {

constexpr NvmlReturn kOk = kNvmlSuccess;
[[maybe_unused]] constexpr NvmlReturn kNo = kNvmlNotSupported;
constexpr int kMachine = MUSTER_STUB_MACHINE;
constexpr unsigned kCount = kMachine == STUB_EIGHT ? 8 : kMachine == STUB_SICK ? 4 : 2;
constexpr const char* kName = kMachine == STUB_EIGHT  ? "NVIDIA H100 80GB HBM3"
                              : kMachine == STUB_SICK ? "NVIDIA H200"
                              : kMachine == STUB_TWO  ? "NVIDIA GeForce RTX 4090"
                                                      : "NVIDIA A100-SXM4-40GB";
NvmlDeviceTag devices[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
int open_count = 0;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVIDIA's
extern "C" {

int MusterStubOpenCount() { return open_count; }

NvmlReturn nvmlInit_v2() {
  if (kMachine == STUB_BROKEN) return kNvmlVersionMismatch;
  ++open_count;
  return kOk;
}

NvmlReturn nvmlShutdown() {
  --open_count;
  return kOk;
}

NvmlReturn nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kCount;
  return kOk;
}

NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  if (index >= kCount) return kNvmlInvalidArgument;
  if (kMachine == STUB_SICK && index == 2) return kNvmlGpuIsLost;
  *device = &devices[index];
  return kOk;
}

NvmlReturn nvmlDeviceGetName(NvmlDevice, char* text, unsigned size) {
  std::snprintf(text, size, "%s", kName);
  return kOk;
}

NvmlReturn nvmlDeviceGetUUID(NvmlDevice device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-00000000-0000-0000-0000-00000000000%u", device->index);
  return kOk;
}

NvmlReturn nvmlDeviceGetMemoryInfo(NvmlDevice, NvmlMemory* memory) {
  memory->total = 80ULL << 30;
  memory->used = 3ULL << 30;
  memory->free = memory->total - memory->used;
  return kOk;
}

#if MUSTER_STUB_MACHINE != STUB_BARE
const char* nvmlErrorString(NvmlReturn code) {
  return code == kNvmlVersionMismatch ? "Driver/library version mismatch" : "Other";
}

NvmlReturn nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.00.01");
  return kOk;
}

NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo* pci) {
  pci->bus = 0x1b + 16 * device->index;
  std::snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", pci->bus);
  return kOk;
}

NvmlReturn nvmlDeviceGetMinorNumber(NvmlDevice device, unsigned* minor) {
  *minor = kCount - 1 - device->index;
  return kOk;
}

NvmlReturn nvmlDeviceGetMemoryAffinity(NvmlDevice device, unsigned size, unsigned long* nodes,
                                       unsigned) {
  std::memset(nodes, 0, size * sizeof(*nodes));
  nodes[0] = kMachine == STUB_EIGHT && device->index >= 4 ? 4UL : 1UL;
  return kOk;
}

NvmlReturn nvmlDeviceGetTopologyCommonAncestor(NvmlDevice a, NvmlDevice b, int* level) {
  const bool pair = kMachine == STUB_EIGHT && a->index / 2 == b->index / 2;
  *level = pair ? 10 : 40;
  return kOk;
}

// Links 0 to 6 are up, the others exist and are down.
NvmlReturn nvmlDeviceGetNvLinkState(NvmlDevice, unsigned link, int* active) {
  if (kMachine == STUB_TWO) return kNo;
  if (link >= 18) return kNvmlInvalidArgument;
  *active = link < 7 ? 1 : 0;
  return kOk;
}

NvmlReturn nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned link, NvmlPciInfo* pci) {
  if (kMachine == STUB_SICK) return kNo;
  return nvmlDeviceGetPciInfo_v3(&devices[(device->index + 1 + link) % kCount], pci);
}

NvmlReturn nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice, unsigned, int* type) {
  *type = kMachine == STUB_SICK ? kNvmlRemoteSwitch : kNvmlRemoteGpu;
  return kOk;
}

NvmlReturn nvmlDeviceGetMigMode(NvmlDevice device, unsigned* current, unsigned* pending) {
  if (kMachine == STUB_TWO) return kNo;
  *current = *pending = kMachine == STUB_SICK && device->index == 3 ? 1 : 0;
  return kOk;
}

NvmlReturn nvmlDeviceGetUtilizationRates(NvmlDevice device, NvmlUtilization* used) {
  used->gpu = 10 * device->index;
  used->memory = 5;
  return kOk;
}

NvmlReturn nvmlDeviceGetTemperature(NvmlDevice, int, unsigned* celsius) {
  *celsius = 41;
  return kOk;
}

NvmlReturn nvmlDeviceGetPowerUsage(NvmlDevice, unsigned* milliwatt) {
  *milliwatt = 123'456;
  return kOk;
}

NvmlReturn nvmlDeviceGetTotalEnergyConsumption(NvmlDevice, unsigned long long* millijoule) {
  if (kMachine == STUB_TWO) return kNo;
  *millijoule = 5'000'000'000ULL;
  return kOk;
}

NvmlReturn nvmlDeviceGetClockInfo(NvmlDevice, int clock, unsigned* mhz) {
  *mhz = clock == kNvmlClockSm ? 1980 : 2619;
  return kOk;
}

// Processes 1000 and 1001 used it at the time 5.
NvmlReturn nvmlDeviceGetProcessUtilization(NvmlDevice, NvmlProcessUse* used, unsigned* count,
                                           unsigned long long since) {
  if (kMachine == STUB_TWO) return kNo;
  if (since >= 5) return kNvmlNotFound;
  if (*count < 2) {
    *count = 2;
    return kNvmlInsufficientSize;
  }
  used[0] = {1000, 5, 30, 1, 0, 0};
  used[1] = {1001, 5, 7, 1, 0, 0};
  *count = 2;
  return kOk;
}
#endif

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

}  // namespace muster::device

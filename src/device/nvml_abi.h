// The part of NVIDIA's management library that we call, declared in our own words.
//
// The vendor's header is not free software, so the program is built without it and finds the
// functions by name at run time. Layouts and numbers are those of the published interface and have
// been stable since 2018; a struct that ever changes gets a new symbol name there. A pointer in
// NvmlApi is null when the library at hand lacks the function.
#pragma once

namespace muster::device {

using NvmlReturn = int;
inline constexpr NvmlReturn kNvmlSuccess = 0;
inline constexpr NvmlReturn kNvmlUninitialized = 1;
inline constexpr NvmlReturn kNvmlInvalidArgument = 2;
inline constexpr NvmlReturn kNvmlNotSupported = 3;
inline constexpr NvmlReturn kNvmlNoPermission = 4;
inline constexpr NvmlReturn kNvmlNotFound = 6;
inline constexpr NvmlReturn kNvmlInsufficientSize = 7;
inline constexpr NvmlReturn kNvmlDriverNotLoaded = 9;
inline constexpr NvmlReturn kNvmlFunctionNotFound = 13;
inline constexpr NvmlReturn kNvmlGpuIsLost = 15;
inline constexpr NvmlReturn kNvmlResetRequired = 16;
inline constexpr NvmlReturn kNvmlVersionMismatch = 18;

inline constexpr unsigned kNvmlTextSize = 96;
inline constexpr unsigned kNvmlMaxLinks =
    36;  // more than any GPU has; the library says when to end
inline constexpr int kNvmlAncestorInternal = 0;       // two GPUs on one board
inline constexpr int kNvmlAncestorSingleSwitch = 10;  // one PCIe switch between them
inline constexpr int kNvmlRemoteGpu = 0;
inline constexpr int kNvmlRemoteSwitch = 2;
inline constexpr int kNvmlSensorGpu = 0;
inline constexpr int kNvmlClockSm = 1;
inline constexpr int kNvmlClockMemory = 2;
inline constexpr unsigned kNvmlScopeNode = 0;

struct NvmlDeviceTag;
using NvmlDevice = NvmlDeviceTag*;

struct NvmlMemory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

struct NvmlUtilization {
  unsigned gpu = 0;
  unsigned memory = 0;
};

struct NvmlProcessUse {
  unsigned pid = 0;
  unsigned long long at_us = 0;
  unsigned sm_percent = 0;
  unsigned memory_percent = 0;
  unsigned encoder_percent = 0;
  unsigned decoder_percent = 0;
};
static_assert(sizeof(NvmlProcessUse) == 32);

struct NvmlPciInfo {
  char bus_id_legacy[16] = {};
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned device_id = 0;
  unsigned subsystem_id = 0;
  char bus_id[32] = {};
};
static_assert(sizeof(NvmlPciInfo) == 68);

struct NvmlApi {
  // Without one of these there is nothing to be learnt.
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  NvmlReturn (*device_count)(unsigned*) = nullptr;
  NvmlReturn (*device_by_index)(unsigned, NvmlDevice*) = nullptr;
  NvmlReturn (*name)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  // Each of these may be missing.
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned) = nullptr;
  NvmlReturn (*pci_info)(NvmlDevice, NvmlPciInfo*) = nullptr;
  NvmlReturn (*minor_number)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*memory_affinity)(NvmlDevice, unsigned, unsigned long*, unsigned) = nullptr;
  NvmlReturn (*common_ancestor)(NvmlDevice, NvmlDevice, int*) = nullptr;
  NvmlReturn (*nvlink_state)(NvmlDevice, unsigned, int*) = nullptr;
  NvmlReturn (*nvlink_remote_pci)(NvmlDevice, unsigned, NvmlPciInfo*) = nullptr;
  NvmlReturn (*nvlink_remote_type)(NvmlDevice, unsigned, int*) = nullptr;
  NvmlReturn (*mig_mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*power_usage)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*energy)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  // What each process used since that time; without room it says how many there are.
  NvmlReturn (*process_use)(NvmlDevice, NvmlProcessUse*, unsigned*, unsigned long long) = nullptr;
};

// A missing function answers as one that the GPU does not support.
template <typename... Parameters, typename... Arguments>
NvmlReturn Ask(NvmlReturn (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? kNvmlNotSupported : function(arguments...);
}

}  // namespace muster::device

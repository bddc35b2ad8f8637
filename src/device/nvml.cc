#include "device/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

namespace muster::device {
namespace {

template <typename Function>
bool Bind(void* library, const char* name, Function*& function) {
  void* address = dlsym(library, name);
  static_assert(sizeof(address) == sizeof(function));
  std::memcpy(&function, &address, sizeof(address));
  return function != nullptr;
}

// A dependency that is missing reads alike, but under its own name.
bool IsAbsent(const std::string& library, const std::string& problem) {
  return problem.rfind(library + ": cannot open shared object file: No such file", 0) == 0;
}

std::string HintFor(NvmlReturn code) {
  switch (code) {
    case kNvmlDriverNotLoaded:
      return "load the kernel module (modprobe nvidia), or go on without GPUs";
    case kNvmlVersionMismatch:
      return "the driver was updated but the old kernel module still runs: reload it or reboot";
    case kNvmlNoPermission:
      return "give this user access to /dev/nvidiactl and /dev/nvidia*";
    default:
      return "see whether nvidia-smi works on this machine";
  }
}

}  // namespace

Result<std::unique_ptr<Nvml>> Nvml::Open(const NvmlOptions& options) {
  for (const auto& name : options.libraries) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* text = dlerror();
      const std::string problem = text == nullptr ? "no reason given" : text;
      if (IsAbsent(name, problem)) continue;
      return Fail(ErrorCode::kUnavailable, "cannot load NVIDIA's management library: " + problem,
                  "install the driver's libraries for this architecture again");
    }
    std::unique_ptr<Nvml> nvml(new Nvml(library));
    if (auto resolved = nvml->Resolve(name); !resolved) return tl::unexpected(resolved.error());
    if (auto started = nvml->Start(); !started) return tl::unexpected(started.error());
    return nvml;
  }
  return nullptr;
}

Nvml::~Nvml() {
  if (started_) api_.shutdown();
  dlclose(library_);
}

Result<void> Nvml::Resolve(const std::string& name) {
  std::string missing;
  const auto need = [&](const char* symbol, auto*& function) {
    if (!Bind(library_, symbol, function))
      missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
  need("nvmlInit_v2", api_.init);
  need("nvmlShutdown", api_.shutdown);
  need("nvmlDeviceGetCount_v2", api_.device_count);
  need("nvmlDeviceGetHandleByIndex_v2", api_.device_by_index);
  need("nvmlDeviceGetName", api_.name);
  need("nvmlDeviceGetUUID", api_.uuid);
  need("nvmlDeviceGetMemoryInfo", api_.memory);
  if (!missing.empty()) {
    return Fail(ErrorCode::kUnavailable, name + " lacks " + missing,
                "install NVIDIA's driver of 2018 (396) or later");
  }
  Bind(library_, "nvmlErrorString", api_.error_string);
  Bind(library_, "nvmlSystemGetDriverVersion", api_.driver_version);
  Bind(library_, "nvmlDeviceGetPciInfo_v3", api_.pci_info);
  Bind(library_, "nvmlDeviceGetMinorNumber", api_.minor_number);
  Bind(library_, "nvmlDeviceGetMemoryAffinity", api_.memory_affinity);
  Bind(library_, "nvmlDeviceGetTopologyCommonAncestor", api_.common_ancestor);
  Bind(library_, "nvmlDeviceGetNvLinkState", api_.nvlink_state);
  Bind(library_, "nvmlDeviceGetNvLinkRemotePciInfo_v2", api_.nvlink_remote_pci);
  Bind(library_, "nvmlDeviceGetNvLinkRemoteDeviceType", api_.nvlink_remote_type);
  Bind(library_, "nvmlDeviceGetMigMode", api_.mig_mode);
  Bind(library_, "nvmlDeviceGetUtilizationRates", api_.utilization);
  Bind(library_, "nvmlDeviceGetTemperature", api_.temperature);
  Bind(library_, "nvmlDeviceGetPowerUsage", api_.power_usage);
  Bind(library_, "nvmlDeviceGetTotalEnergyConsumption", api_.energy);
  Bind(library_, "nvmlDeviceGetClockInfo", api_.clock);
  Bind(library_, "nvmlDeviceGetProcessUtilization", api_.process_use);
  return {};
}

Result<void> Nvml::Start() {
  const auto code = api_.init();
  if (code != kNvmlSuccess) {
    return Fail(ErrorCode::kUnavailable, "NVIDIA's driver does not answer: " + ErrorText(code),
                HintFor(code));
  }
  started_ = true;
  return {};
}

void* Nvml::Symbol(const char* name) const { return dlsym(library_, name); }

std::string Nvml::ErrorText(NvmlReturn code) const {
  const char* text = api_.error_string == nullptr ? nullptr : api_.error_string(code);
  return text == nullptr ? fmt::format("error {}", code) : fmt::format("{} ({})", text, code);
}

std::string Nvml::DriverVersion() const {
  std::array<char, kNvmlTextSize> text = {};
  if (Ask(api_.driver_version, text.data(), kNvmlTextSize - 1) != kNvmlSuccess) return {};
  return text.data();
}

}  // namespace muster::device

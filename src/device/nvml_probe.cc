#include "device/nvml_probe.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "device/gpu_names.h"
#include "device/nvml_links.h"

namespace muster::device {
namespace {

constexpr unsigned kNodeWords = 16;  // 1024 NUMA nodes, as many as Linux can have
constexpr int kBitsPerWord = 64;
static_assert(sizeof(unsigned long) * 8 == kBitsPerWord);

template <typename Getter>
std::string TextOf(Getter getter, NvmlDevice device) {
  std::array<char, kNvmlTextSize> text = {};
  return getter(device, text.data(), kNvmlTextSize - 1) == kNvmlSuccess ? text.data() : "";
}

// Absent when the driver names none, or several: then the GPU is near to all of them.
std::optional<int> NumaOf(const NvmlApi& api, NvmlDevice device) {
  std::array<unsigned long, kNodeWords> nodes = {};
  if (Ask(api.memory_affinity, device, kNodeWords, nodes.data(), kNvmlScopeNode) != kNvmlSuccess) {
    return std::nullopt;
  }
  std::optional<int> found;
  for (std::size_t word = 0; word < nodes.size(); ++word) {
    if (nodes[word] == 0) continue;
    if (found.has_value() || !std::has_single_bit(nodes[word])) return std::nullopt;
    found = static_cast<int>(word) * kBitsPerWord + std::countr_zero(nodes[word]);
  }
  return found;
}

std::string FaultText(const Nvml& nvml, NvmlReturn code) {
  if (code == kNvmlGpuIsLost) return "it has fallen off the bus; the machine needs a reboot";
  if (code == kNvmlNoPermission) return "this user may not open its device file";
  if (code == kNvmlResetRequired) return "it needs a reset (nvidia-smi --gpu-reset)";
  return "the driver refuses it: " + nvml.ErrorText(code);
}

GpuFacts FactsOf(const Nvml& nvml, int index, NvmlDevice device) {
  const auto& api = nvml.Api();
  GpuFacts gpu;
  gpu.index = index;
  gpu.uuid = TextOf(api.uuid, device);
  gpu.name = TextOf(api.name, device);
  gpu.type = ShortGpuType(gpu.name);
  NvmlMemory memory;
  const auto code = api.memory(device, &memory);
  if (code == kNvmlSuccess) {
    gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
  } else if (code != kNvmlNotSupported) {  // a GPU that shares the host's memory has none to tell
    gpu.fault = FaultText(nvml, code);
  }
  if (gpu.uuid.empty()) gpu.fault = "the driver gives it no uuid";
  NvmlPciInfo pci;
  if (Ask(api.pci_info, device, &pci) == kNvmlSuccess) gpu.pci_bus_id = BusId(pci);
  unsigned minor = 0;
  if (Ask(api.minor_number, device, &minor) == kNvmlSuccess) gpu.minor = static_cast<int>(minor);
  gpu.numa = NumaOf(api, device);
  unsigned mig = 0, pending = 0;
  if (Ask(api.mig_mode, device, &mig, &pending) == kNvmlSuccess && mig != 0) {
    gpu.fault = fmt::format(
        "it is cut into instances (MIG); `nvidia-smi -i {} -mig 0` makes it whole", index);
  }
  return gpu;
}

template <typename Number, typename Value>
std::optional<Number> If(NvmlReturn code, Value value) {
  if (code != kNvmlSuccess) return std::nullopt;
  return static_cast<Number>(value);
}

}  // namespace

Result<const Nvml*> NvmlProbe::Library() {
  if (nvml_ == nullptr) {
    auto opened = Nvml::Open(options_);
    if (!opened) return tl::unexpected(opened.error());
    nvml_ = std::move(*opened);
  }
  return nvml_.get();
}

Result<std::vector<GpuFacts>> NvmlProbe::List() {
  const auto library = Library();
  if (!library) return tl::unexpected(library.error());
  if (*library == nullptr) return std::vector<GpuFacts>{};
  const Nvml& nvml = **library;
  unsigned count = 0;
  if (const auto code = nvml.Api().device_count(&count); code != kNvmlSuccess) {
    return Fail(ErrorCode::kUnavailable, "cannot count the GPUs: " + nvml.ErrorText(code),
                "see whether nvidia-smi works on this machine");
  }
  std::vector<GpuFacts> gpus;
  std::vector<NvmlDevice> handles;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    const auto code = nvml.Api().device_by_index(i, &device);
    if (code == kNvmlSuccess) {
      gpus.push_back(FactsOf(nvml, static_cast<int>(i), device));
    } else {
      GpuFacts gpu;
      gpu.index = static_cast<int>(i);
      gpu.fault = FaultText(nvml, code);
      gpus.push_back(std::move(gpu));
    }
    handles.push_back(gpus.back().fault.empty() ? device : nullptr);
  }
  ReadLinks(nvml.Api(), handles, gpus);
  return gpus;
}

Result<GpuSample> NvmlProbe::Sample(int index) {
  const auto library = Library();
  if (!library) return tl::unexpected(library.error());
  if (*library == nullptr) {
    return Fail(ErrorCode::kNotFound, fmt::format("GPU {} does not exist", index),
                "this machine has no NVIDIA GPUs");
  }
  const Nvml& nvml = **library;
  const auto& api = nvml.Api();
  NvmlDevice device = nullptr;
  const auto code = api.device_by_index(static_cast<unsigned>(index), &device);
  if (code == kNvmlInvalidArgument) {
    return Fail(ErrorCode::kNotFound, fmt::format("GPU {} does not exist", index),
                "nvidia-smi -L lists those that do");
  }
  if (code != kNvmlSuccess) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("GPU {} does not answer: {}", index, FaultText(nvml, code)));
  }
  NvmlMemory memory;
  const auto memory_code = api.memory(device, &memory);
  if (memory_code != kNvmlSuccess && memory_code != kNvmlNotSupported) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("GPU {} does not answer: {}", index, FaultText(nvml, memory_code)));
  }
  GpuSample sample;
  NvmlUtilization used;
  const auto used_code = Ask(api.utilization, device, &used);
  sample.gpu_percent = If<int>(used_code, used.gpu);
  sample.memory_percent = If<int>(used_code, used.memory);
  sample.memory_used_bytes = If<std::int64_t>(memory_code, memory.used);
  sample.memory_total_bytes = If<std::int64_t>(memory_code, memory.total);
  unsigned value = 0;
  const auto read = [&](NvmlReturn answer) { return If<int>(answer, value); };
  sample.temperature_celsius = read(Ask(api.temperature, device, kNvmlSensorGpu, &value));
  sample.sm_clock_mhz = read(Ask(api.clock, device, kNvmlClockSm, &value));
  sample.memory_clock_mhz = read(Ask(api.clock, device, kNvmlClockMemory, &value));
  sample.power_milliwatt = read(Ask(api.power_usage, device, &value));
  unsigned long long energy = 0;
  const auto energy_code = Ask(api.energy, device, &energy);
  sample.energy_millijoule = If<std::int64_t>(energy_code, energy);
  return sample;
}

}  // namespace muster::device

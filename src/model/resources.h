// Resources: what a worker asks for and what a queue is promised.
//
// A resource is known by name: "gpus", "cpus", "memory", a GPU type such as "H100", or any other
// countable thing a node offers ("fpga"). GPUs and cores are counted in thousandths, memory in
// bytes, other things in pieces.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace muster::model {

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

using Amounts = std::map<std::string, std::int64_t>;  // by resource name

enum class GpuKind : std::uint8_t {
  kNone,
  kWhole,   // `devices` whole GPUs
  kShare,   // `share_milli` of each of `devices` GPUs
  kMemory,  // `memory_bytes` of each of `devices` GPUs
};

struct GpuRequest {
  GpuKind kind = GpuKind::kNone;
  int devices = 0;
  std::int64_t share_milli = 0;
  std::int64_t memory_bytes = 0;
  friend bool operator==(const GpuRequest&, const GpuRequest&) = default;
  friend auto operator<=>(const GpuRequest&, const GpuRequest&) = default;
};

struct WorkerRequest {
  GpuRequest gpu;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  Amounts other;
  friend bool operator==(const WorkerRequest&, const WorkerRequest&) = default;
  friend auto operator<=>(const WorkerRequest&, const WorkerRequest&) = default;
};

}  // namespace muster::model

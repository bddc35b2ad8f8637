#include "device/gpu_use.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace muster::device {

std::optional<int> GpuUse::PercentOf(int index, const std::set<int>& pids, bool whole,
                                     std::uint64_t& seen) {
  const auto library = probe_.Library();
  if (!library || *library == nullptr) return std::nullopt;
  const auto& api = (*library)->Api();
  NvmlDevice device = nullptr;
  if (api.device_by_index(static_cast<unsigned>(index), &device) != kNvmlSuccess) {
    return std::nullopt;
  }
  unsigned count = 0;
  auto code = Ask(api.process_use, device, static_cast<NvmlProcessUse*>(nullptr), &count,
                  static_cast<unsigned long long>(seen));
  std::vector<NvmlProcessUse> used(count);
  if (count > 0) {
    code = Ask(api.process_use, device, used.data(), &count, static_cast<unsigned long long>(seen));
    used.resize(std::min<std::size_t>(count, used.size()));
  }
  if (code == kNvmlNotFound) return 0;  // nobody used it since
  if (code != kNvmlSuccess) {
    NvmlUtilization all;
    if (!whole || Ask(api.utilization, device, &all) != kNvmlSuccess) return std::nullopt;
    return static_cast<int>(all.gpu);
  }
  unsigned most = 0;
  for (const auto& one : used) {
    if (one.at_us > seen) seen = one.at_us;
    if (pids.contains(static_cast<int>(one.pid))) most = std::max(most, one.sm_percent);
  }
  return static_cast<int>(most);
}

}  // namespace muster::device

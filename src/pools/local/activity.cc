#include "pools/local/activity.h"

#include <algorithm>
#include <utility>

namespace muster::pools {

void Activity::Look(std::int64_t now_ms, std::int64_t cpu_ms, std::optional<int> gpu_percent,
                    const IdleThresholds& thresholds) {
  const auto passed_ms = std::max<std::int64_t>(1, now_ms - std::exchange(looked_ms_, now_ms));
  // Less than before: processes ended whose parents did not wait for them.
  const auto spent_ms = cpu_ms_ < 0 ? 0 : std::max<std::int64_t>(0, cpu_ms - cpu_ms_);
  cpu_ms_ = cpu_ms;
  const bool cpu = spent_ms * 1000 >= thresholds.cpu_milli * passed_ms && spent_ms > 0;
  const bool gpu = gpu_percent.value_or(0) >= std::max(1, thresholds.gpu_percent);
  if (cpu || gpu) used_ms_ = now_ms;
}

void Activity::Typed(std::int64_t at_ms) { used_ms_ = std::max(used_ms_, at_ms); }

}  // namespace muster::pools

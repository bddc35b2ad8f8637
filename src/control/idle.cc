#include "control/idle.h"

#include <algorithm>

#include "base/units.h"

namespace muster::control {
namespace {

constexpr std::int64_t kLeastMs = 60'000;
constexpr std::int64_t kMostMs = 600'000;

}  // namespace

std::int64_t IdleWarningMs(std::int64_t limit_ms) {
  return std::min(std::clamp(limit_ms / 10, kLeastMs, kMostMs), limit_ms / 2);
}

std::string IdleText(const state::JobRecord& job, std::int64_t now_ms) {
  const auto left_ms = std::max<std::int64_t>(0, job.idle_until_ms - now_ms);
  return "job " + std::to_string(job.id) + " is idle: released in " +
         FormatDurationMs((left_ms + 999) / 1000 * 1000) +
         " unless it uses a processor or a GPU, or a key is typed";
}

}  // namespace muster::control

#include "cli/moment.h"

#include <ctime>

#include "base/units.h"

namespace muster::cli {
namespace {

constexpr std::int64_t kFurthestMs = 3650LL * 86'400'000;

}  // namespace

std::optional<std::int64_t> ParseMoment(std::string_view text, std::int64_t now_ms) {
  if (text == "now") return now_ms;
  if (text.starts_with('+')) {
    const auto after_ms = ParseDurationMs(text.substr(1));
    if (!after_ms || *after_ms > kFurthestMs) return std::nullopt;
    return now_ms + *after_ms;
  }
  const auto written = ParseMomentMs(text);  // as if the clock on the wall showed UTC
  if (!written || *written < 0 || text.ends_with('Z')) return written;
  const std::time_t seconds = *written / 1000;
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return std::nullopt;
  parts.tm_isdst = -1;  // it is looked up
  return std::int64_t{std::mktime(&parts)} * 1000 + *written % 1000;
}

}  // namespace muster::cli

// Units: the integers in which decisions are made, and how people write and read them.
//
// GPU share is counted in thousandths of a GPU, cores in thousandths of a core, memory in bytes,
// time in milliseconds. Integers, because a decision must replay to the same result on every
// machine. Parsing accepts what people write ("0.25", "16Gi", "90s") and refuses what would be
// rounded away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

inline constexpr std::int64_t kMilli = 1000;  // thousandths in one GPU or one core

// "2", "0.25" -> thousandths; at most three decimals, not negative.
std::optional<std::int64_t> ParseMilli(std::string_view text);
std::string FormatMilli(std::int64_t milli);  // 2500 -> "2.5"

// "512", "10Gi", "1.5T": bytes; Ki Mi Gi Ti Pi are powers of 1024, k M G T P powers of 1000.
std::optional<std::int64_t> ParseBytes(std::string_view text);
std::string FormatBytes(std::int64_t bytes);  // the largest binary unit that is exact

// "90s", "1h30m", "2d", "250ms" -> milliseconds; a bare number is refused, it has no unit.
std::optional<std::int64_t> ParseDurationMs(std::string_view text);
std::string FormatDurationMs(std::int64_t ms);  // 5400000 -> "1h30m"

// RFC 3339 in UTC with milliseconds: "2026-11-15T16:25:46.123Z". Parsing takes no other form.
std::string FormatTimeMs(std::int64_t wall_ms);
std::optional<std::int64_t> ParseTimeMs(std::string_view text);
// A day, or a moment of it as far as it is written: "2026-01-31T12:30", with or without the Z.
std::optional<std::int64_t> ParseMomentMs(std::string_view text);

}  // namespace muster

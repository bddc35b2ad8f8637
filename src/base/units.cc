#include "base/units.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <limits>

#include "base/wide.h"

namespace muster {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A decimal number times `scale`, exactly or not at all; moves `text` behind the number.
std::optional<std::int64_t> TakeScaled(std::string_view& text, std::int64_t scale) {
  std::size_t used = 0;
  Wide value = 0;
  while (used < text.size() && IsDigit(text[used])) {
    value = value * 10 + (text[used++] - '0');
    if (value > kMax) return std::nullopt;
  }
  if (used == 0) return std::nullopt;
  value *= scale;
  if (used < text.size() && text[used] == '.') {
    ++used;
    const std::size_t first = used;
    Wide part = 0, power = 1;
    while (used < text.size() && IsDigit(text[used])) {
      part = part * 10 + (text[used++] - '0');
      power *= 10;
      if (power > static_cast<Wide>(1'000'000'000'000'000'000)) return std::nullopt;
    }
    if (used == first || part * scale % power != 0) return std::nullopt;
    value += part * scale / power;
  }
  if (value > kMax) return std::nullopt;
  text.remove_prefix(used);
  return static_cast<std::int64_t>(value);
}

struct Unit {
  std::string_view name;
  std::int64_t scale;
};

constexpr std::array<Unit, 11> kByteUnits = {{{"Pi", 1LL << 50},
                                              {"Ti", 1LL << 40},
                                              {"Gi", 1LL << 30},
                                              {"Mi", 1LL << 20},
                                              {"Ki", 1LL << 10},
                                              {"P", 1'000'000'000'000'000},
                                              {"T", 1'000'000'000'000},
                                              {"G", 1'000'000'000},
                                              {"M", 1'000'000},
                                              {"k", 1'000},
                                              {"", 1}}};

constexpr std::array<Unit, 5> kTimeUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

std::size_t NumberLength(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && (IsDigit(text[n]) || text[n] == '.')) ++n;
  return n;
}

// The distance from zero; negating the smallest integer itself would overflow.
std::uint64_t Magnitude(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

}  // namespace

std::optional<std::int64_t> ParseMilli(std::string_view text) {
  const auto value = TakeScaled(text, kMilli);
  return text.empty() ? value : std::nullopt;
}

std::string FormatMilli(std::int64_t milli) {
  constexpr std::uint64_t one = kMilli;
  const std::uint64_t size = Magnitude(milli);
  std::string out = milli < 0 ? "-" : "";
  out += std::to_string(size / one);
  if (const auto rest = size % one; rest != 0) {
    std::string digits = std::to_string(one + rest).substr(1);
    while (digits.back() == '0') digits.pop_back();
    out += "." + digits;
  }
  return out;
}

std::optional<std::int64_t> ParseBytes(std::string_view text) {
  const auto suffix = text.substr(NumberLength(text));
  for (const auto& unit : kByteUnits) {
    if (suffix != unit.name) continue;
    const auto value = TakeScaled(text, unit.scale);
    return text == suffix ? value : std::nullopt;
  }
  return std::nullopt;
}

std::string FormatBytes(std::int64_t bytes) {
  for (std::size_t i = 0; i < 5; ++i) {
    const auto& unit = kByteUnits[i];
    if (bytes >= unit.scale && bytes % unit.scale == 0) {
      return std::to_string(bytes / unit.scale) + std::string(unit.name);
    }
  }
  return std::to_string(bytes);
}

std::optional<std::int64_t> ParseDurationMs(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t total = 0;
  while (!text.empty()) {
    const auto rest = text.substr(NumberLength(text));
    std::size_t letters = 0;
    while (letters < rest.size() && rest[letters] >= 'a' && rest[letters] <= 'z') ++letters;
    const Unit* found = nullptr;
    for (const auto& unit : kTimeUnits) {
      if (rest.substr(0, letters) == unit.name) found = &unit;
    }
    if (found == nullptr) return std::nullopt;
    const auto value = TakeScaled(text, found->scale);
    if (!value || text.size() != rest.size() || *value > kMax - total) return std::nullopt;
    total += *value;
    text.remove_prefix(letters);
  }
  return total;
}

std::string FormatDurationMs(std::int64_t ms) {
  if (ms == 0) return "0s";
  std::string out = ms < 0 ? "-" : "";
  std::uint64_t left = Magnitude(ms);
  for (const auto& unit : kTimeUnits) {
    const auto scale = static_cast<std::uint64_t>(unit.scale);
    if (left < scale) continue;
    out += std::to_string(left / scale) + std::string(unit.name);
    left %= scale;
  }
  return out;
}

std::string FormatTimeMs(std::int64_t wall_ms) {
  const auto at =
      std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(wall_ms));
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  std::array<char, 40> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
      static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
      static_cast<int>(time.subseconds().count()));
  return {text.data(), static_cast<std::size_t>(size)};
}

std::optional<std::int64_t> ParseTimeMs(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd.dddZ";
  if (text.size() != kForm.size()) return std::nullopt;
  std::array<int, 7> numbers{};
  std::size_t field = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != 'd') {
      if (text[i] != kForm[i]) return std::nullopt;
      ++field;
    } else {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      numbers[field] = numbers[field] * 10 + (text[i] - '0');
    }
  }
  const std::chrono::year_month_day date{std::chrono::year{numbers[0]},
                                         std::chrono::month{static_cast<unsigned>(numbers[1])},
                                         std::chrono::day{static_cast<unsigned>(numbers[2])}};
  if (!date.ok() || numbers[3] > 23 || numbers[4] > 59 || numbers[5] > 59) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5]) * 1000 + numbers[6];
}

std::optional<std::int64_t> ParseMomentMs(std::string_view text) {
  constexpr std::string_view kWhole = "0000-01-01T00:00:00.000Z";
  if (text.size() < kWhole.size() && text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() < 10 || text.size() > kWhole.size()) return std::nullopt;
  return ParseTimeMs(std::string(text) + std::string(kWhole.substr(text.size())));
}

}  // namespace muster

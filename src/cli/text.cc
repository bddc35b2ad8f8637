#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/utf8.h"

namespace muster::cli {
namespace {

struct Range {
  std::uint32_t first, last;
};

// Characters that are not seen but change how others are.
constexpr std::array kHidden = {
    Range{0x061C, 0x061C}, Range{0x200B, 0x200F}, Range{0x2028, 0x202E},  Range{0x2060, 0x2069},
    Range{0xFEFF, 0xFEFF}, Range{0xFFF9, 0xFFFB}, Range{0xE0000, 0xE0FFF}};
constexpr std::array kNoWidth = {
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD}, Range{0x0610, 0x061A},
    Range{0x064B, 0x065F}, Range{0x0E34, 0x0E3A}, Range{0x0E47, 0x0E4E}, Range{0x1AB0, 0x1AFF},
    Range{0x1DC0, 0x1DFF}, Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F}};
constexpr std::array kDouble = {
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},
    Range{0x2614, 0x2615},   Range{0x26A1, 0x26A1},   Range{0x2705, 0x2705},
    Range{0x274C, 0x274C},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},
    Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},
    Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE4F},
    Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F},
    Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD}};

template <std::size_t N>
bool In(const std::array<Range, N>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const Range& r) { return code >= r.first && code <= r.last; });
}

// The first character, which is valid and `length` bytes long.
std::uint32_t CodeOf(std::string_view text, std::size_t length) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0);
  std::uint32_t code = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

std::size_t WidthOf(std::uint32_t code) {
  if (code < 0x300) return 1;
  return In(kNoWidth, code) ? 0 : In(kDouble, code) ? 2 : 1;
}

}  // namespace

std::string Clean(std::string_view text, Breaks breaks) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const auto length = model::CharacterLength(text);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
      continue;
    }
    const auto code = CodeOf(text, length);
    if (code == '\n') {
      out += breaks == Breaks::kKeep ? "\n" : "\\n";
    } else if (code == '\t') {
      out += breaks == Breaks::kKeep ? "  " : "\\t";
    } else if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
      out += fmt::format("\\x{:02x}", code);
    } else if (In(kHidden, code)) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string SafeJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const auto length = std::max<std::size_t>(1, model::CharacterLength(json));
    const auto code = CodeOf(json, length);
    if (code < 0x7F || (code >= 0xA0 && !In(kHidden, code)) || code > 0xFFFF) {
      out += json.substr(0, length);
    } else {
      out += fmt::format("\\u{:04x}", code);
    }
    json.remove_prefix(length);
  }
  return out;
}

std::size_t Columns(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto length = std::max<std::size_t>(1, model::CharacterLength(text));
    columns += WidthOf(CodeOf(text, length));
    text.remove_prefix(length);
  }
  return columns;
}

std::string Cut(std::string_view text, std::size_t columns) {
  if (Columns(text) <= columns) return std::string(text);
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const auto length = std::max<std::size_t>(1, model::CharacterLength(text));
    const auto width = WidthOf(CodeOf(text, length));
    if (used + width + 1 > columns) break;  // one column is for the ellipsis
    used += width;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  if (columns > 0) out += "…";
  return out;
}

std::string Pad(std::string_view text, std::size_t columns) {
  const auto have = Columns(text);
  std::string out(text);
  if (have < columns) out.append(columns - have, ' ');
  return out;
}

std::vector<std::string> Wrap(std::string_view text, std::size_t columns, std::size_t indent) {
  const auto width = std::max<std::size_t>(columns, 1);
  if (indent + 10 > width) indent = 0;
  std::vector<std::string> lines;
  std::string line;
  std::size_t used = 0, space = 0;  // columns, and where the line may break: behind that byte
  const auto end_line = [&](std::size_t at) {
    auto rest = line.substr(at);
    line.resize(at);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
    rest.erase(0, rest.find_first_not_of(' '));
    line = std::string(indent, ' ') + rest;
    used = Columns(line);
    space = 0;
  };
  while (!text.empty()) {
    const auto length = std::max<std::size_t>(1, model::CharacterLength(text));
    const auto character = text.substr(0, length);
    const auto wide = WidthOf(CodeOf(character, length));
    if (used + wide > width) end_line(space > indent ? space : line.size());
    line += character;
    used += wide;
    if (character == " ") space = line.size();
    text.remove_prefix(length);
  }
  if (!line.empty() || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string Count(long long number, std::string_view one, std::string_view many) {
  if (number == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}

}  // namespace muster::cli

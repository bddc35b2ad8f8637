#include "cli/screen.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cli {
namespace {

// The next character; what is no UTF-8 is one `?` a byte.
char32_t Next(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t out = size == 1 ? first : first & (0xFFU >> (size + 1));
  bool good = first < 0x80 || (first >= 0xC2 && first < 0xF5 && text.size() >= size);
  for (std::size_t i = 1; good && i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    good = (byte & 0xC0) == 0x80;
    out = out << 6 | (byte & 0x3FU);
  }
  text.remove_prefix(good ? size : 1);
  const bool control = out < 0x20 || (out >= 0x7F && out < 0xA0) ||
                       (out >= 0x200B && out < 0x2010) || (out >= 0x2028 && out < 0x202F) ||
                       (out >= 0x2066 && out < 0x206A);
  return good && !control ? out : U'?';
}

bool IsWide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

void Append(std::string& out, char32_t c) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

}  // namespace

Screen::Screen(int rows, int cols, bool color) : rows_(0), cols_(0), color_(color) {
  Resize(rows, cols);
}

void Screen::Resize(int rows, int cols) {
  rows_ = std::max(1, rows);
  cols_ = std::max(1, cols);
  known_ = false;
  Clear();
}

void Screen::Clear() {
  cells_.assign(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(cols_), Cell{});
}

int Screen::Put(int row, int col, std::string_view text, Ink ink, int end) {
  const int limit = end < 0 ? cols_ : std::min(end, cols_);
  if (row < 0 || row >= rows_ || col < 0) return col;
  while (!text.empty() && col < limit) {
    const auto glyph = Next(text);
    const int width = IsWide(glyph) ? 2 : 1;
    if (col + width > limit) break;
    cells_[At(row, col)] = {glyph, ink};
    if (width == 2) cells_[At(row, col + 1)] = {0, ink};
    col += width;
  }
  return col;
}

void Screen::Fill(int row, Ink ink) {
  if (row < 0 || row >= rows_) return;
  for (int col = 0; col < cols_; ++col) cells_[At(row, col)].ink = ink;
}

std::string Screen::InkCode(Ink ink) const {
  switch (ink) {
    case Ink::kPlain:
      return "\033[0m";
    case Ink::kBold:
      return "\033[0;1m";
    case Ink::kDim:
      return "\033[0;2m";
    case Ink::kInverse:
      return "\033[0;7m";
    case Ink::kRed:
      return color_ ? "\033[0;31m" : "\033[0m";
    case Ink::kGreen:
      return color_ ? "\033[0;32m" : "\033[0m";
    case Ink::kYellow:
      return color_ ? "\033[0;33m" : "\033[0m";
    case Ink::kCyan:
      return color_ ? "\033[0;36m" : "\033[0m";
  }
  return "";
}

std::string Screen::Draw() {
  std::string out;
  if (!known_) {
    out += kClearScreen;
    shown_.assign(cells_.size(), Cell{});
    known_ = true;
  }
  Ink ink = Ink::kPlain;
  for (int row = 0; row < rows_; ++row) {
    int cursor = -1;  // where it stands in this row
    for (int col = 0; col < cols_; ++col) {
      auto& cell = cells_[At(row, col)];
      auto& shown = shown_[At(row, col)];
      if (cell == shown) continue;
      shown = cell;
      if (cell.glyph == 0) continue;  // came with its first half
      if (cursor != col) out += fmt::format("\033[{};{}H", row + 1, col + 1);
      if (cell.ink != ink) {
        ink = cell.ink;
        out += InkCode(ink);
      }
      Append(out, cell.glyph);
      cursor = col + (IsWide(cell.glyph) ? 2 : 1);
    }
  }
  if (ink != Ink::kPlain) out += InkCode(Ink::kPlain);
  return out;
}

std::string Screen::Text() const {
  std::string out;
  for (int row = 0; row < rows_; ++row) {
    std::string line;
    for (int col = 0; col < cols_; ++col) {
      if (const auto glyph = cells_[At(row, col)].glyph; glyph != 0) Append(line, glyph);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line;
    out += '\n';
  }
  return out;
}

std::string PlainLine(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\r') {
      if (i + 1 < text.size()) out.clear();
    } else if (c == '\t') {
      out.append(8 - out.size() % 8, ' ');
    } else if (c == '\033') {
      const bool csi = i + 1 < text.size() && text[i + 1] == '[';
      const bool osc = i + 1 < text.size() && text[i + 1] == ']';
      i += 1;
      if (csi) {
        while (++i < text.size() && (text[i] < '@' || text[i] > '~')) {
        }
      } else if (osc) {
        while (++i < text.size() && text[i] != '\a' && text[i] != '\\') {
        }
      }
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) {
      out += c;
    }
  }
  return out;
}

}  // namespace muster::cli

#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "cli/text.h"

namespace muster::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastLast = 16;  // what is cut shorter says nothing

// A cell as it is shown, and whether its column has colours.
struct Column {
  std::string_view head;
  std::vector<std::string> cells;  // with the head in front
  std::size_t width = 0;
  bool states = false;
};

std::size_t WidthOf(const std::vector<Column>& columns) {
  std::size_t width = columns.empty() ? 0 : kGap * (columns.size() - 1);
  for (const auto& column : columns) width += column.width;
  return width;
}

// Leaves out columns until the rest fits with the last one cut to its least, then cuts that.
void Fit(std::vector<Column>& columns, std::size_t room,
         const std::vector<std::string_view>& drop) {
  const auto least = [&] {
    const auto last = columns.back().width;
    return WidthOf(columns) - last + std::min(last, kLeastLast);
  };
  for (const auto name : drop) {
    if (least() <= room) break;
    std::erase_if(columns, [name](const Column& column) { return column.head == name; });
  }
  while (least() > room && columns.size() > 1) columns.pop_back();
  const auto width = WidthOf(columns);
  if (width <= room) return;
  auto& last = columns.back();
  last.width -= std::min(last.width - 1, width - room);
  for (auto& cell : last.cells) cell = Cut(cell, last.width);
}

}  // namespace

std::size_t TerminalColumns(int fd) {
  winsize size{};
  if (::isatty(fd) != 1) return 0;
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Sheet SheetNow() {
  const char* plain = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const auto columns = TerminalColumns(STDOUT_FILENO);
  const bool dumb = kind != nullptr && std::string_view(kind) == "dumb";
  return {columns, columns > 0 && !dumb && (plain == nullptr || *plain == '\0')};
}

std::string Paint(std::string_view word, bool color) {
  struct Meaning {
    std::string_view word, paint;
  };
  constexpr std::string_view kGood = "\033[32m", kSoon = "\033[33m", kBad = "\033[31m",
                             kPast = "\033[2m";
  constexpr std::array kMeanings = {
      Meaning{"running", kGood},   Meaning{"ready", kGood},     Meaning{"ok", kGood},
      Meaning{"waiting", kSoon},   Meaning{"starting", kSoon},  Meaning{"stopping", kSoon},
      Meaning{"paused", kSoon},    Meaning{"suspended", kSoon}, Meaning{"held", kSoon},
      Meaning{"cordoned", kSoon},  Meaning{"draining", kSoon},  Meaning{"warn", kSoon},
      Meaning{"failed", kBad},     Meaning{"down", kBad},       Meaning{"fail", kBad},
      Meaning{"succeeded", kPast}, Meaning{"cancelled", kPast}};
  const auto* found = std::find_if(kMeanings.begin(), kMeanings.end(),
                                   [word](const Meaning& one) { return one.word == word; });
  if (!color || found == kMeanings.end()) return std::string(word);
  return std::string(found->paint) + std::string(word) + "\033[0m";
}

std::string LayOut(const std::vector<std::string>& head, const Rows& rows, const Sheet& sheet,
                   const std::vector<std::string_view>& drop) {
  std::vector<Column> columns;
  columns.reserve(head.size());
  for (std::size_t i = 0; i < head.size(); ++i) {
    Column column{head[i], {head[i]}, 0, head[i] == "PHASE" || head[i] == "STATE"};
    for (const auto& row : rows) column.cells.push_back(i < row.size() ? Clean(row[i]) : "");
    for (const auto& cell : column.cells) column.width = std::max(column.width, Columns(cell));
    if (column.width > 0) columns.push_back(std::move(column));
  }
  if (columns.empty()) return "";
  if (sheet.columns > 0) Fit(columns, sheet.columns, drop);
  std::string out;
  for (std::size_t row = 0; row <= rows.size(); ++row) {
    std::string line;
    std::size_t behind = 0;  // spaces that are due when something follows
    for (const auto& column : columns) {
      const auto& cell = column.cells[row];
      if (!cell.empty()) {
        line.append(behind, ' ');
        line += Paint(cell, sheet.color && column.states && row > 0);
        behind = 0;
      }
      behind += column.width - Columns(cell) + kGap;
    }
    out += line;
    out += '\n';
  }
  return out;
}

}  // namespace muster::cli

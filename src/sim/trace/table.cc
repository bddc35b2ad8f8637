#include "sim/trace/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace muster::sim {
namespace {

// The cells of one line. A cell in quotes may hold separators, and a doubled quote for one.
std::vector<std::string> Split(std::string_view line, char separator) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"' && (quoted || cells.back().empty())) {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// The next line without its end, taken from the front.
std::string_view TakeLine(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

template <typename Value>
bool Parse(const std::string& text, Value& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Result<Table> Table::Read(const std::string& path, const TraceFiles& files) {
  const auto text = files.Read(path);
  if (!text) return tl::unexpected(text.error());
  return FromText(path, *text);
}

Result<Table> Table::FromText(const std::string& path, std::string_view text, char separator,
                              std::vector<std::string> head) {
  Table table;
  table.path_ = path;
  table.head_ = std::move(head);
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  for (std::size_t line_number = 1; !rest.empty(); ++line_number) {
    const auto line = TakeLine(rest);
    if (line.empty()) continue;
    auto cells = Split(line, separator);
    if (table.head_.empty()) {
      table.head_ = std::move(cells);
      continue;
    }
    if (cells.size() != table.head_.size()) {
      return Fail(ErrorCode::kInvalid, fmt::format("{}:{}: {} cells where the head has {}", path,
                                                   line_number, cells.size(), table.head_.size()));
    }
    table.cells_.push_back(std::move(cells));
    table.lines_.push_back(line_number);
  }
  if (table.head_.empty()) {
    return Fail(ErrorCode::kInvalid, path + " is empty", "a trace begins with its column names");
  }
  return table;
}

std::size_t Table::Find(std::string_view column) const {
  return static_cast<std::size_t>(std::ranges::find(head_, column) - head_.begin());
}

Result<std::size_t> Table::Column(std::string_view name) const {
  const auto column = Find(name);
  if (column < head_.size()) return column;
  return Fail(ErrorCode::kInvalid, fmt::format("{} has no column \"{}\"", path_, name),
              fmt::format("it has {}", fmt::join(head_, ", ")));
}

Result<double> Table::Number(std::size_t row, std::size_t column) const {
  double value = 0;
  if (Parse(cells_[row][column], value) && std::isfinite(value)) return value;
  return Fail(ErrorCode::kInvalid, fmt::format("{}{} is no number: \"{}\"", Where(row),
                                               head_[column], cells_[row][column]));
}

Result<std::int64_t> Table::Integer(std::size_t row, std::size_t column) const {
  std::int64_t value = 0;
  if (Parse(cells_[row][column], value)) return value;
  return Fail(ErrorCode::kInvalid, fmt::format("{}{} is no whole number: \"{}\"", Where(row),
                                               head_[column], cells_[row][column]));
}

std::string Table::Where(std::size_t row) const {
  return fmt::format("{}:{}: ", path_, lines_[row]);
}

}  // namespace muster::sim

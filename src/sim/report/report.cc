#include "sim/report/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::sim::report {

std::string SeedText(std::int64_t first, std::size_t count) {
  if (count <= 1) return fmt::format("{}", first);
  return fmt::format("{} to {}", first, first + static_cast<std::int64_t>(count) - 1);
}

std::string NameAll(std::size_t count, const std::string& names) {
  return count <= 3 ? names : fmt::format("{} policies", count);
}

void MarkBest(Grid& grid, std::size_t column, const std::vector<double>& values, bool least) {
  if (values.size() < 2) return;
  const auto best = least ? std::ranges::min_element(values) : std::ranges::max_element(values);
  const auto text = grid.rows[static_cast<std::size_t>(best - values.begin())][column].text;
  for (auto& row : grid.rows) row[column].best = row[column].text == text;
}

}  // namespace muster::sim::report

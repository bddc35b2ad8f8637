#include "sim/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/oracles.h"

namespace muster::sim::report {

std::string SeedText(std::int64_t first, std::size_t count) {
  if (count <= 1) return fmt::format("{}", first);
  return fmt::format("{} to {}", first, first + static_cast<std::int64_t>(count) - 1);
}

std::string NameAll(std::size_t count, const std::string& names) {
  return count <= 3 ? names : fmt::format("{} policies", count);
}

std::string BestNote(const Grid& grid) {
  const auto oracles = std::ranges::count_if(
      grid.rows, [](const auto& row) { return NamesOracle(row.front().text); });
  if (std::ssize(grid.rows) - oracles < 2) return "";
  return oracles == 0 ? " Bold is best."
                      : " Bold is best, without oracles: those know how long jobs take.";
}

std::vector<bool> BestOf(const std::vector<Rated>& all, bool least) {
  std::vector<bool> best(all.size());
  const Rated* found = nullptr;
  std::size_t counting = 0;
  for (const auto& one : all) {
    if (NamesOracle(one.name)) continue;
    ++counting;
    if (found == nullptr || (least ? one.value < found->value : one.value > found->value)) {
      found = &one;
    }
  }
  if (counting < 2) return best;
  for (std::size_t i = 0; i < all.size(); ++i) {
    best[i] = !NamesOracle(all[i].name) && all[i].text == found->text;
  }
  return best;
}

void MarkBest(Grid& grid, std::size_t column, const std::vector<double>& values, bool least) {
  std::vector<Rated> all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    all.push_back({grid.rows[i].front().text, values[i], grid.rows[i][column].text});
  }
  const auto best = BestOf(all, least);
  for (std::size_t i = 0; i < values.size(); ++i) grid.rows[i][column].best = best[i];
}

}  // namespace muster::sim::report

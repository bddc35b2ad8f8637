#include "cli/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster::cli {
namespace {

constexpr std::size_t kLabel = 10;  // columns left of the axis

struct Steps {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();

  bool empty() const { return first > last; }
  std::size_t Column(std::int64_t step, std::size_t columns) const {
    if (first == last) return 0;
    const auto part = static_cast<double>(step - first) / static_cast<double>(last - first);
    return std::min(columns - 1, static_cast<std::size_t>(part * static_cast<double>(columns)));
  }
};

struct Values {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  std::size_t Row(double value, std::size_t rows) const {
    if (high <= low) return rows - 1;
    const auto part = (high - value) / (high - low);
    return std::min(rows - 1, static_cast<std::size_t>(part * static_cast<double>(rows)));
  }
};

Steps StepsOf(const std::vector<PlotLine>& lines) {
  Steps steps;
  for (const auto& line : lines) {
    for (const auto& [step, value] : line.points) {
      if (!std::isfinite(value)) continue;
      steps.first = std::min(steps.first, step);
      steps.last = std::max(steps.last, step);
    }
  }
  return steps;
}

// Of each column; no number: it has no value.
std::vector<double> MeansOf(const PlotLine& line, const Steps& steps, std::size_t columns) {
  std::vector<double> sums(columns), counts(columns);
  for (const auto& [step, value] : line.points) {
    if (!std::isfinite(value)) continue;
    const auto column = steps.Column(step, columns);
    sums[column] += value;
    counts[column] += 1;
  }
  for (std::size_t at = 0; at < columns; ++at) {
    sums[at] = counts[at] > 0 ? sums[at] / counts[at] : std::numeric_limits<double>::quiet_NaN();
  }
  return sums;
}

}  // namespace

std::string TextPlot(const std::vector<PlotLine>& lines, PlotSize size) {
  const auto steps = StepsOf(lines);
  if (steps.empty()) return "";
  Values values;
  std::vector<std::vector<double>> means;
  for (const auto& line : lines) {
    for (const double mean : means.emplace_back(MeansOf(line, steps, size.columns))) {
      if (std::isnan(mean)) continue;
      values.low = std::min(values.low, mean);
      values.high = std::max(values.high, mean);
    }
  }
  std::vector<std::string> canvas(size.rows, std::string(size.columns, ' '));
  for (std::size_t at = 0; at < lines.size(); ++at) {
    for (std::size_t column = 0; column < size.columns; ++column) {
      const double mean = means[at][column];
      if (std::isnan(mean)) continue;
      char& cell = canvas[values.Row(mean, size.rows)][column];
      cell = cell == ' ' ? lines[at].mark : '#';
    }
  }
  std::string out;
  for (std::size_t row = 0; row < canvas.size(); ++row) {
    const bool labelled = row == 0 || row + 1 == canvas.size();
    const auto label = labelled ? fmt::format("{:.4g}", row == 0 ? values.high : values.low) : "";
    auto& cells = canvas[row];
    cells.erase(cells.find_last_not_of(' ') + 1);
    out += fmt::format("{:>{}} |{}\n", label, kLabel, cells);
  }
  out += fmt::format("{:>{}} +{}\n", "", kLabel, std::string(size.columns, '-'));
  const auto last = fmt::format("step {}", steps.last);
  out += fmt::format("{:>{}}  {:<{}}{}\n", "", kLabel, steps.first,
                     size.columns - std::min(size.columns - 1, last.size()), last);
  return out;
}

}  // namespace muster::cli

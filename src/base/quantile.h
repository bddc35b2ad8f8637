// Quantile: the value at a share of the values, 0.5 being the one in the middle.
//
// Between the two nearest it is interpolated, as the published tables of the Pollux set are. None
// of no values: that is 0. The first takes values that are sorted already; the other sorts a copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace muster {

inline double QuantileOfSorted(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

inline double Quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return QuantileOfSorted(values, share);
}

}  // namespace muster

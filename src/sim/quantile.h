// Quantile: the value at a share of the sorted values, for the reports of the lab.
//
// Between the two nearest it is interpolated, as the published tables of the Pollux set are. Sorts
// a copy; nothing is asked for often enough to do better.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace muster::sim {

inline double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

}  // namespace muster::sim

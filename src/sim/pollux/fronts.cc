#include "sim/pollux/fronts.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace muster::sim {
namespace {

bool Same(const TwoScores& a, const TwoScores& b) {
  return a.first == b.first && a.second == b.second;
}

// Of a front in descending order of the first score, and so ascending by the second.
void Space(std::span<const TwoScores> points, const std::vector<std::size_t>& front,
           std::vector<Standing>& standings) {
  const auto &high = points[front.front()], &low = points[front.back()];
  const double first_width = high.first - low.first, second_width = low.second - high.second;
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  for (std::size_t i = 0; i < front.size(); ++i) {
    const auto& here = points[front[i]];
    double distance = std::numeric_limits<double>::infinity();
    if (i > 0 && Same(here, points[front[i - 1]])) {
      distance = 0;  // a copy adds no width
    } else if (i > 0 && i + 1 < front.size()) {
      const auto &before = points[front[i - 1]], &after = points[front[i + 1]];
      distance = share(before.first - after.first, first_width) +
                 share(after.second - before.second, second_width);
    }
    standings[front[i]].distance = distance;
  }
}

}  // namespace

std::vector<Standing> StandingsOf(std::span<const TwoScores> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (points[a].first != points[b].first) return points[a].first > points[b].first;
    if (points[a].second != points[b].second) return points[a].second > points[b].second;
    return a < b;
  });
  // In that order a point is beaten by a front just when its last member's second score is as
  // large, copies apart; the last members' second scores fall from front to front.
  std::vector<std::vector<std::size_t>> fronts;
  std::vector<Standing> standings(points.size());
  for (const auto i : order) {
    const auto found = std::ranges::partition_point(fronts, [&](const auto& front) {
      const auto& last = points[front.back()];
      return last.second >= points[i].second && !Same(last, points[i]);
    });
    standings[i].front = static_cast<int>(found - fronts.begin());
    if (found == fronts.end()) {
      fronts.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  for (const auto& front : fronts) Space(points, front, standings);
  return standings;
}

}  // namespace muster::sim

// Fronts: how points stand that are judged by two measures at once, both better when larger.
//
// The first front is what no other point beats in both; the second is that without the first, and
// so on. Within a front the lonelier points stand higher, so that a search keeps the whole width of
// what it found. (Deb's NSGA-II, whose selection Pollux searches with.)
#pragma once

#include <span>
#include <vector>

namespace muster::sim {

struct TwoScores {
  double first = 0;
  double second = 0;
};

struct Standing {
  int front = 0;        // 0 is the best
  double distance = 0;  // between its neighbours in the front; infinite at the ends
};

std::vector<Standing> StandingsOf(std::span<const TwoScores> points);

}  // namespace muster::sim

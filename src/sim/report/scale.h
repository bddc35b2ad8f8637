// Scale: where a value stands on an axis, and which ticks a reader wants there.
//
// Ticks are round in the unit that is read: 1, 2 or 5 times a power of ten for numbers; for times
// what clocks have, so 15 minutes and 6 hours and not 1,000 seconds. Any data make an axis: none,
// one value, values that are no numbers. A value outside stands at the nearer end.
#pragma once

#include <string>
#include <vector>

namespace muster::sim::report {

struct Tick {
  double value = 0;
  std::string label;
};

struct Axis {
  std::string title;  // with the unit of the labels, where they have none
  double from = 0;
  double to = 1;  // above `from`
  bool log = false;
  std::vector<Tick> ticks = {};  // ascending, all within

  // 0 at `from`, 1 at `to`.
  double Share(double value) const;
};

// Begins and ends at a tick. `most`: so many ticks have room.
Axis NumberAxis(std::string title, double from, double to, int most);
// From 0, and to that second exactly: what comes after the last end is no news.
Axis TimeAxis(std::string title, double to_s, int most);
// Begins and ends at times that have a round name; nothing is before one second.
Axis LogTimeAxis(std::string title, double from_s, double to_s, int most);

}  // namespace muster::sim::report

// Frame: the place of a plot within a drawing, with what stands around it.
//
// Axes draw their grid into the frame and their labels outside of it; titles stand upright, above a
// left axis and below a bottom one, because turned text is slow to read. How much room that takes
// is known beforehand, so that a drawing can be laid out from top to bottom in one go.
#pragma once

#include <string>
#include <vector>

#include "sim/report/scale.h"
#include "sim/report/svg.h"

namespace muster::sim::report {

struct Frame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
  double X(const Axis& axis, double value) const { return left + width * axis.Share(value); }
  double Y(const Axis& axis, double value) const { return bottom() - height * axis.Share(value); }
};

inline constexpr double kAxisRoom = 44;   // below a frame: labels and title
inline constexpr double kTitleRoom = 22;  // above a frame: the title of its left axis

void DrawGridAcross(Drawing& drawing, const Frame& frame, const Axis& axis);
void DrawBottomAxis(Drawing& drawing, const Frame& frame, const Axis& axis);
void DrawLeftAxis(Drawing& drawing, const Frame& frame, const Axis& axis);

struct Key {
  enum class Mark { kLine, kBox, kThin };
  std::string name;
  std::string classes;  // of its mark
  Mark mark = Mark::kLine;
};

// Above a frame that begins there; a narrow drawing has no room to indent it.
double LegendLeft(const Drawing& drawing, double frame_left);
// Side by side, on as many lines as they need. Returns where the next thing may begin.
double DrawLegend(Drawing& drawing, double left, double top, const std::vector<Key>& keys);

}  // namespace muster::sim::report

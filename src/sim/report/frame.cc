#include "sim/report/frame.h"

namespace muster::sim::report {

void DrawGridAcross(Drawing& drawing, const Frame& frame, const Axis& axis) {
  for (const auto& tick : axis.ticks) {
    const double x = frame.X(axis, tick.value);
    drawing.Line(x, frame.top, x, frame.bottom(), "grid");
  }
}

void DrawBottomAxis(Drawing& drawing, const Frame& frame, const Axis& axis) {
  drawing.Line(frame.left, frame.bottom(), frame.right(), frame.bottom(), "axis");
  for (const auto& tick : axis.ticks) {
    const double x = frame.X(axis, tick.value);
    drawing.Line(x, frame.bottom(), x, frame.bottom() + 4, "axis");
    drawing.Text(x, frame.bottom() + 18, tick.label, "middle");
  }
  drawing.Text(frame.left + frame.width / 2, frame.bottom() + 37, axis.title, "middle muted");
}

void DrawLeftAxis(Drawing& drawing, const Frame& frame, const Axis& axis) {
  for (const auto& tick : axis.ticks) {
    const double y = frame.Y(axis, tick.value);
    drawing.Line(frame.left, y, frame.right(), y, "grid");
    drawing.Text(frame.left - 7, y + 4.5, tick.label, "end");
  }
}

double LegendLeft(const Drawing& drawing, double frame_left) {
  return drawing.width() < 500 ? 0 : frame_left;
}

double DrawLegend(Drawing& drawing, double left, double top, const std::vector<Key>& keys) {
  constexpr double kLineHeight = 21, kMarkWidth = 24, kGap = 18;
  double x = left, y = top;
  for (const auto& key : keys) {
    const double width = kMarkWidth + 6 + TextWidth(key.name);
    if (x > left && x + width > drawing.width()) {
      x = left;
      y += kLineHeight;
    }
    if (key.mark == Key::Mark::kLine) {
      drawing.Path(Pen().MoveTo(x, y + 10).ToX(x + kMarkWidth), key.classes);
    } else {
      const double height = key.mark == Key::Mark::kBox ? 12 : 3;
      drawing.Box(x, y + 10 - height / 2, kMarkWidth, height, key.classes);
    }
    drawing.Text(x + kMarkWidth + 6, y + 14.5, key.name);
    x += width + kGap;
  }
  return keys.empty() ? top : y + kLineHeight;
}

}  // namespace muster::sim::report

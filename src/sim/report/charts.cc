#include "sim/report/charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/frame.h"

namespace muster::sim::report {
namespace {

constexpr std::size_t kMostSteps = 400;  // of a line: no more would be seen
constexpr std::size_t kNameCharacters = 16;

int TicksFor(double width, double each) { return std::max(2, static_cast<int>(width / each)); }

double LeftRoom(const std::vector<Sample>& samples) {
  double room = 0;
  for (const auto& one : samples) {
    room = std::max(room, TextWidth(Shorten(one.name, kNameCharacters)));
  }
  return room + 10;
}

// Rises to the share of values that are at most so large.
Pen DistributionLine(std::vector<double> values, const Frame& frame, const Axis& x, const Axis& y) {
  std::ranges::sort(values);
  Pen pen;
  if (values.empty()) return pen;
  pen.MoveTo(frame.X(x, values.front()), frame.bottom());
  const std::size_t steps = std::min(values.size(), kMostSteps);
  for (std::size_t i = 1; i <= steps; ++i) {
    const std::size_t rank = i * values.size() / steps;
    pen.ToX(frame.X(x, values[rank - 1]));
    pen.ToY(frame.Y(y, 100 * static_cast<double>(rank) / static_cast<double>(values.size())));
  }
  return pen.ToX(frame.right());
}

// Little more than the values, whatever ticks there are.
Axis CloseAxis(const std::string& title, double from, double to, int most) {
  const double room = from < to ? 0.04 * (to - from) : 0.5;
  Axis axis = NumberAxis(title, from - room, to + room, most + 2);
  axis.from = from - room;
  axis.to = to + room;
  std::erase_if(axis.ticks,
                [&](const Tick& tick) { return tick.value < axis.from || tick.value > axis.to; });
  return axis;
}

// Where the rows of bars or dots stand, with their names.
struct RowFrame {
  static constexpr double kRow = 30;

  RowFrame(Drawing& drawing, const std::vector<Sample>& samples, double right_room) {
    frame.left = LeftRoom(samples);
    frame.top = 6;
    frame.width = drawing.width() - frame.left - right_room;
    frame.height = kRow * static_cast<double>(std::max<std::size_t>(1, samples.size()));
    drawing.set_height(frame.bottom() + kAxisRoom);
  }
  double Middle(std::size_t row) const {
    return frame.top + kRow * (static_cast<double>(row) + 0.5);
  }
  void Name(Drawing& drawing, const std::vector<Sample>& samples) const {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      drawing.Text(frame.left - 8, Middle(i) + 4.5, Shorten(samples[i].name, kNameCharacters),
                   "end");
    }
  }

  Frame frame;
};

}  // namespace

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double Least(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::ranges::min_element(values);
}

double Most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}

Drawing DrawDistribution(const std::vector<Sample>& times_s, const std::string& title,
                         double width) {
  Drawing drawing(width);
  std::vector<double> all;
  std::vector<Key> keys;
  for (std::size_t i = 0; i < times_s.size(); ++i) {
    all.insert(all.end(), times_s[i].values.begin(), times_s[i].values.end());
    keys.push_back({times_s[i].name, "line " + ColorClass(i)});
  }
  const double below_legend = DrawLegend(drawing, LegendLeft(drawing, 44), 0, keys);
  drawing.Text(0, below_legend + 16, "share of the jobs (%)", "muted");
  const Frame frame{44, below_legend + kTitleRoom + 10, width - 44 - 26,
                    std::clamp(width * 0.4, 200.0, 320.0)};
  const Axis x = LogTimeAxis(title, Least(all), Most(all), TicksFor(frame.width, 56));
  const Axis y = NumberAxis("", 0, 100, 6);
  DrawGridAcross(drawing, frame, x);
  DrawLeftAxis(drawing, frame, y);
  DrawBottomAxis(drawing, frame, x);
  for (std::size_t i = 0; i < times_s.size(); ++i) {
    drawing.Path(DistributionLine(times_s[i].values, frame, x, y), "line " + ColorClass(i));
  }
  drawing.set_height(frame.bottom() + kAxisRoom);
  return drawing;
}

std::vector<Step> Thinned(std::vector<Step> steps, double to_s, std::size_t most) {
  if (steps.size() <= most || most == 0) return steps;
  std::vector<Step> parts;
  const double from_s = steps.front().at_s;
  std::size_t now = 0;  // the step that holds at the beginning of the part
  for (std::size_t i = 0; i < most; ++i) {
    const auto edge = [&](std::size_t part) {
      return from_s + (to_s - from_s) * static_cast<double>(part) / static_cast<double>(most);
    };
    const double begin = edge(i), end = edge(i + 1);
    double sum = 0;
    for (double at = begin; at < end;) {
      while (now + 1 < steps.size() && steps[now + 1].at_s <= at) ++now;
      const double until = now + 1 < steps.size() ? std::min(end, steps[now + 1].at_s) : end;
      sum += steps[now].value * (until - at);
      at = until;
    }
    if (end > begin) parts.push_back({begin, sum / (end - begin)});
  }
  return parts;
}

Drawing DrawPanels(const std::vector<Panel>& panels, double width) {
  constexpr double kPanel = 90, kGap = 14;
  Drawing drawing(width);
  double end_s = 0;
  for (const auto& panel : panels) end_s = std::max(end_s, panel.to_s);
  Frame frame{44, 0, width - 44 - 26, kPanel};
  const Axis x = TimeAxis("time", end_s, TicksFor(frame.width, 56));
  const Axis y = NumberAxis("", 0, 100, 3);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const auto& panel = panels[i];
    drawing.Text(frame.left, frame.top + 15, panel.name, "strong");
    drawing.Text(frame.right(), frame.top + 15, panel.note, "end muted");
    frame.top += kTitleRoom + 2;
    DrawGridAcross(drawing, frame, x);
    DrawLeftAxis(drawing, frame, y);
    const auto steps = Thinned(panel.steps, panel.to_s, kMostSteps);
    if (!steps.empty()) {
      Pen top;
      top.MoveTo(frame.X(x, steps.front().at_s), frame.bottom());
      for (std::size_t s = 0; s < steps.size(); ++s) {
        top.ToY(frame.Y(y, steps[s].value));
        top.ToX(frame.X(x, s + 1 < steps.size() ? steps[s + 1].at_s : panel.to_s));
      }
      top.ToY(frame.bottom());
      drawing.Path(Pen(top).Close(), "fill area " + ColorClass(i));
      drawing.Path(top, "outline " + ColorClass(i));
    }
    if (i + 1 < panels.size()) {
      drawing.Line(frame.left, frame.bottom(), frame.right(), frame.bottom(), "axis");
      frame.top = frame.bottom() + kGap;
    }
  }
  DrawBottomAxis(drawing, frame, x);
  drawing.set_height(frame.bottom() + kAxisRoom);
  return drawing;
}

Drawing DrawBars(const std::vector<Sample>& samples, const std::string& title, double to,
                 double width, const std::string& unit) {
  Drawing drawing(width);
  const RowFrame rows(drawing, samples, 72);
  const Frame& frame = rows.frame;
  for (const auto& one : samples) to = std::max(to, Most(one.values));
  const Axis x = NumberAxis(title, 0, to, TicksFor(frame.width, 48));
  DrawGridAcross(drawing, frame, x);
  rows.Name(drawing, samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& values = samples[i].values;
    const double y = rows.Middle(i), end = frame.X(x, Mean(values));
    drawing.Box(frame.left, y - 9, end - frame.left, 18, "paper");  // the grid ends here
    drawing.Box(frame.left, y - 9, end - frame.left, 18, "fill bar " + ColorClass(0));
    drawing.Text(frame.right() + 14, y + 4.5, fmt::format("{:.2f}{}", Mean(values), unit));
    if (values.size() < 2) continue;
    const double least = frame.X(x, Least(values)), most = frame.X(x, Most(values));
    Pen range;
    range.MoveTo(least, y - 5).ToY(y + 5).MoveTo(least, y).ToX(most).MoveTo(most, y - 5).ToY(y + 5);
    drawing.Path(range, "range");
  }
  DrawBottomAxis(drawing, frame, x);
  return drawing;
}

Drawing DrawCurves(const std::vector<Curve>& curves, const std::string& x_title,
                   const std::string& y_title, double width) {
  Drawing drawing(width);
  std::vector<Key> keys;
  double most_x = 0, most_y = 0;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    keys.push_back({curves[i].name, "line " + ColorClass(i)});
    for (const auto& [x, y] : curves[i].points) {
      most_x = std::max(most_x, x);
      most_y = std::max(most_y, y);
    }
  }
  const double below_legend = DrawLegend(drawing, LegendLeft(drawing, 44), 0, keys);
  drawing.Text(0, below_legend + 16, y_title, "muted");
  const Frame frame{44, below_legend + kTitleRoom + 10, width - 44 - 26,
                    std::clamp(width * 0.4, 200.0, 320.0)};
  const Axis x = NumberAxis(x_title, 0, most_x, TicksFor(frame.width, 56));
  const Axis y = NumberAxis("", 0, most_y, 6);
  DrawGridAcross(drawing, frame, x);
  DrawLeftAxis(drawing, frame, y);
  DrawBottomAxis(drawing, frame, x);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    Pen pen;
    for (const auto& [at, value] : curves[i].points) {
      const double left = frame.X(x, at), top = frame.Y(y, value);
      pen.empty() ? pen.MoveTo(left, top) : pen.To(left, top);
      drawing.Dot(left, top, 3.5, "fill " + ColorClass(i));
    }
    drawing.Path(pen, "line " + ColorClass(i));
  }
  drawing.set_height(frame.bottom() + kAxisRoom);
  return drawing;
}

Drawing DrawDots(const std::vector<Sample>& samples, const std::string& title, double width) {
  Drawing drawing(width);
  const RowFrame rows(drawing, samples, 26);
  const Frame& frame = rows.frame;
  std::vector<double> all;
  for (const auto& one : samples) all.insert(all.end(), one.values.begin(), one.values.end());
  const Axis x = CloseAxis(title, Least(all), Most(all), TicksFor(frame.width, 44));
  DrawGridAcross(drawing, frame, x);
  rows.Name(drawing, samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double y = rows.Middle(i), mean = frame.X(x, Mean(samples[i].values));
    drawing.Line(frame.left, y, frame.right(), y, "grid");
    // Seeds beyond that many would only cover each other.
    for (std::size_t v = 0; v < std::min(samples[i].values.size(), kMostSteps); ++v) {
      drawing.Dot(frame.X(x, samples[i].values[v]), y, 4.5, "fill dot " + ColorClass(0));
    }
    if (!samples[i].values.empty()) drawing.Line(mean, y - 10, mean, y + 10, "range");
  }
  DrawBottomAxis(drawing, frame, x);
  return drawing;
}

}  // namespace muster::sim::report

#include "sim/report/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "sim/report/frame.h"

namespace muster::sim::report {
namespace {

constexpr std::size_t kNamedRows = 30;
constexpr std::size_t kNameCharacters = 14;

// 1, 2, 3 to 4, 5 to 8, and so on.
int LevelOf(int gpus) {
  return gpus <= 1 ? 0
                   : std::min(kLevels - 1,
                              static_cast<int>(std::bit_width(static_cast<unsigned>(gpus - 1))));
}

std::string LevelName(int level) {
  if (level == 0) return "1 GPU";
  if (level == 1) return "2";
  const int least = (1 << (level - 1)) + 1;
  if (level == kLevels - 1) return fmt::format("{} or more", least);
  return fmt::format("{}–{}", least, 1 << level);
}

// Few levels are spread over the shades, so that they are told apart.
std::string ShadeOf(int level, int highest) {
  if (highest == 0) return LevelClass(kLevels / 2);
  if (highest <= kLevels - 3) return LevelClass(1 + level * (kLevels - 3) / highest);
  return LevelClass(level);
}

std::vector<Key> KeysOf(int highest) {
  std::vector<Key> keys = {{"waits", "waiting", Key::Mark::kThin}};
  for (int level = 0; level <= highest; ++level) {
    keys.push_back({LevelName(level), ShadeOf(level, highest), Key::Mark::kBox});
  }
  return keys;
}

double RowHeight(std::size_t rows) {
  if (rows <= kNamedRows) return 20;
  return std::clamp(600 / static_cast<double>(rows), 2.0, 12.0);
}

// The shapes of all rows: the waits, and the boxes of each shade.
struct Shapes {
  Pen waits;
  std::array<Pen, kLevels> boxes;
};

void AddRow(const GanttRow& row, const Frame& frame, const Axis& x, double top, double height,
            Shapes& shapes) {
  const double gap = height >= 4 ? height * 0.12 : 0.2;
  const double thin = std::max(0.8, height * 0.14);
  const double from = frame.X(x, static_cast<double>(row.submit_s));
  const double to = frame.X(x, static_cast<double>(row.end_s));
  if (to > from) shapes.waits.Box(from, top + (height - thin) / 2, to - from, thin);
  for (std::size_t i = 0; i < row.boxes.size(); ++i) {
    const int level = LevelOf(row.boxes[i].gpus);
    const double begin = frame.X(x, static_cast<double>(row.boxes[i].start_s));
    double end = frame.X(x, static_cast<double>(row.boxes[i].end_s));
    // What follows within a third of a pixel in the same shade looks like one.
    while (i + 1 < row.boxes.size() && LevelOf(row.boxes[i + 1].gpus) == level &&
           frame.X(x, static_cast<double>(row.boxes[i + 1].start_s)) - end < 0.3) {
      end = frame.X(x, static_cast<double>(row.boxes[++i].end_s));
    }
    shapes.boxes.at(static_cast<std::size_t>(level))
        .Box(begin, top + gap, std::max(0.3, end - begin), height - 2 * gap);
  }
}

void DrawNames(Drawing& drawing, const Frame& frame, const std::vector<GanttRow>& rows,
               double height) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    drawing.Text(frame.left - 8, frame.top + height * (static_cast<double>(i) + 0.5) + 4.5,
                 Shorten(rows[i].name, kNameCharacters), "end");
  }
}

// Numbers at the side: the first job is number 1.
void DrawNumbers(Drawing& drawing, const Frame& frame, std::size_t jobs, std::size_t stride,
                 double height) {
  const Axis axis = NumberAxis("", 0, static_cast<double>(jobs), 8);
  for (const auto& tick : axis.ticks) {
    const double number = std::max(1.0, tick.value);
    if (number > static_cast<double>(jobs)) break;
    const double y = frame.top + height * ((number - 1) / static_cast<double>(stride) + 0.5);
    drawing.Text(frame.left - 8, y + 4.5, fmt::format("{:.0f}", number), "end");
  }
}

double LeftRoom(const std::vector<GanttRow>& rows) {
  if (rows.size() > kNamedRows) return 44;
  double room = 0;
  for (const auto& row : rows) room = std::max(room, TextWidth(Shorten(row.name, kNameCharacters)));
  return room + 10;
}

}  // namespace

std::size_t GanttStride(std::size_t rows) {
  return std::max<std::size_t>(1, (rows + kMostRows - 1) / kMostRows);
}

Drawing DrawGantt(const std::vector<GanttRow>& rows, const GanttScale& scale, double width) {
  Drawing drawing(width);
  const int highest = LevelOf(scale.gpus);
  const std::size_t stride = GanttStride(rows.size());
  const std::size_t drawn = (rows.size() + stride - 1) / stride;
  const double height = RowHeight(drawn);
  Frame frame;
  frame.left = LeftRoom(rows);
  frame.top = DrawLegend(drawing, LegendLeft(drawing, frame.left), 0, KeysOf(highest)) + 8;
  if (rows.size() > kNamedRows) {
    drawing.Text(0, frame.top + 8, "job, by submission", "muted");
    frame.top += kTitleRoom;
  }
  frame.width = width - frame.left - 26;
  frame.height = height * static_cast<double>(std::max<std::size_t>(1, drawn));
  const Axis x = TimeAxis("time", static_cast<double>(scale.to_s),
                          std::max(2, static_cast<int>(frame.width / 56)));
  DrawGridAcross(drawing, frame, x);
  Shapes shapes;
  for (std::size_t i = 0; i < drawn; ++i) {
    AddRow(rows[i * stride], frame, x, frame.top + height * static_cast<double>(i), height, shapes);
  }
  drawing.Path(shapes.waits, "waiting");
  for (int level = 0; level <= highest; ++level) {
    drawing.Path(shapes.boxes.at(static_cast<std::size_t>(level)), ShadeOf(level, highest));
  }
  if (rows.size() <= kNamedRows) {
    DrawNames(drawing, frame, rows, height);
  } else {
    DrawNumbers(drawing, frame, rows.size(), stride, height);
  }
  for (std::size_t i = 0; i < drawn; ++i) {
    drawing.Box(frame.left, frame.top + height * static_cast<double>(i), frame.width, height, "tip",
                rows[i * stride].tip);
  }
  DrawBottomAxis(drawing, frame, x);
  drawing.set_height(frame.bottom() + kAxisRoom);
  return drawing;
}

}  // namespace muster::sim::report

// Gantt: jobs one below the other, in the order of submission, each over the time it was there.
//
// A thin line says that a job waited, a box that it held GPUs, the darker (on a dark page: the
// brighter) the more. Few jobs have their names; many have narrow rows; beyond `kMostRows` every
// n-th is drawn. All boxes of a shade are one path, so a thousand restarts remain a small file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/svg.h"

namespace muster::sim::report {

struct GanttBox {
  std::int64_t start_s = 0;
  std::int64_t end_s = 0;
  int gpus = 0;
};

struct GanttRow {
  std::string name;
  std::string tip;  // when the pointer rests on it
  std::int64_t submit_s = 0;
  std::int64_t end_s = 0;
  std::vector<GanttBox> boxes;
};

inline constexpr std::size_t kMostRows = 320;

// Every n-th row is drawn; 1: all.
std::size_t GanttStride(std::size_t rows);

// The same for drawings that are to be compared.
struct GanttScale {
  std::int64_t to_s = 0;  // where the axis ends
  int gpus = 1;           // the most that a box has
};
Drawing DrawGantt(const std::vector<GanttRow>& rows, const GanttScale& scale, double width);

}  // namespace muster::sim::report

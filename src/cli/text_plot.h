// TextPlot: curves as lines of text, for a look without leaving the terminal.
//
// Each column shows the mean of the values whose steps fall into it, so a noisy curve reads as its
// course. All curves share the axes; where two meet the later one is hidden behind a `#`. Values
// that are infinite or no number are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

struct PlotLine {
  char mark = '*';
  std::vector<std::pair<std::int64_t, double>> points;  // by step
};

struct PlotSize {
  std::size_t columns = 64;
  std::size_t rows = 12;
};

// Lines with their ends; empty: there is nothing to show.
std::string TextPlot(const std::vector<PlotLine>& lines, PlotSize size = {});

}  // namespace muster::cli

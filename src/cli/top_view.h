// TopView: a frame of `muster top`, drawn on a screen.
//
// Head (daemon, GPUs by type as bars, jobs by phase), the table, a pane below it when one is open,
// and one line for keys, the filter or a question. Works from 40 columns and 10 rows on; columns
// that find no room are left out from the right. Pure: what is shown comes with the call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/screen.h"
#include "cli/top_model.h"

namespace muster::cli {

struct TopPane {
  std::string title;  // empty: closed
  std::vector<std::string> lines;
  bool end = false;        // the last lines are shown, not the first
  std::size_t back = 0;    // lines scrolled away from there
  std::size_t indent = 0;  // of what a line is continued on
};

struct TopFrame {
  TopPane pane;
  std::string prompt;  // instead of the line of keys
  std::int64_t now_ms = 0;
  std::size_t first = 0;  // row of the table that is shown first; kept by DrawTop()
  bool help = false;
};

void DrawTop(TopModel& model, TopFrame& frame, Screen& screen);

// How many rows the table has in such a frame, for page keys.
int TableRows(const TopModel& model, const TopFrame& frame, int rows);

}  // namespace muster::cli

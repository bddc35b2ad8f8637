// Table: rows under a head, for people.
//
// In a pipe a table is as wide as it needs to be and plain. On a terminal it fits the window: the
// last column is cut first, then columns are left out in the order that the caller names (else from
// the right; the first always stays), and states have colours unless $NO_COLOR or --no-color
// forbids it. Cells are cleaned here, so a table cannot be used to write to somebody's terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

using Rows = std::vector<std::vector<std::string>>;

struct Sheet {
  std::size_t columns = 0;  // 0: no limit
  bool color = false;
};
// Of standard output, as it is now.
Sheet SheetNow();
// Of this terminal; 0 when it is none.
std::size_t TerminalColumns(int fd);

// The table as text. `drop`: heads of columns that may be left out, the least needed first.
std::string LayOut(const std::vector<std::string>& head, const Rows& rows, const Sheet& sheet,
                   const std::vector<std::string_view>& drop = {});

// The word in the colour of what it means for a job or a node; as it is where there is none.
std::string Paint(std::string_view word, bool color);

}  // namespace muster::cli

// `muster validate FILE...`: what is wrong with job, queue and cluster files, all of it at once.
//
// The problems are the data and go to `out`: one line per problem with the source line and a caret
// below it, or one JSON object. A file that cannot be read is told on `err` as well. Source lines
// are shown without control characters and cut around the caret, so that a hostile file cannot
// write to the terminal.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace muster::cli {

enum class ValidateFormat : std::uint8_t { kTable, kJson };

struct ValidateStreams {
  std::istream& in;  // read for the file "-"
  std::ostream& out;
  std::ostream& err;
};

// The exit status: 0 all valid, 5 something is invalid, 4 a file may not be read, 3 one is not
// there.
int RunValidate(const std::vector<std::string>& files, ValidateFormat format,
                ValidateStreams streams);

}  // namespace muster::cli

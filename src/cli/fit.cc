#include "cli/fit.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>
#include <vector>

#include "cli/full_screen.h"
#include "cli/screen.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

class Captured {
 public:
  explicit Captured(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  ~Captured() { stream_.rdbuf(before_); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::ostream& stream_;
  std::streambuf* before_;
};

}  // namespace

std::string FitLines(std::string_view text, std::size_t rows, std::size_t columns) {
  const std::size_t room = std::max<std::size_t>(rows, 2) - 1;
  std::size_t used = 0, lines = 0, kept = 0, end = 0;
  for (std::size_t begin = 0; begin < text.size(); ++lines) {
    const auto stop = std::min(text.find('\n', begin), text.size());
    const auto wide = Columns(PlainLine(text.substr(begin, stop - begin)));
    used += wide == 0 || columns == 0 ? 1 : (wide + columns - 1) / columns;
    begin = stop + 1;
    if (used >= room) continue;  // a row for the line that counts the others
    kept = lines + 1;
    end = std::min(begin, text.size());
  }
  if (used <= room) return std::string(text);
  return std::string(text.substr(0, end)) + "... and " +
         Count(static_cast<long long>(lines - kept), "more row") + "\n";
}

void PrintInWindow(const std::function<void()>& print) {
  std::string out, talk;
  {
    const Captured shown(std::cout);
    std::optional<Captured> said;
    if (::isatty(STDERR_FILENO) == 1) said.emplace(std::cerr);
    print();
    out = shown.text();
    if (said) talk = said->text();
  }
  const auto size = SizeNow();
  const auto rows = static_cast<std::size_t>(size.rows);
  const auto below = static_cast<std::size_t>(std::count(talk.begin(), talk.end(), '\n'));
  std::cout << kClearScreen
            << FitLines(out, rows > below ? rows - below : 0, static_cast<std::size_t>(size.cols))
            << std::flush;
  std::cerr << talk;
}

}  // namespace muster::cli

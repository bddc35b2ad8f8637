#include "cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/session.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr std::size_t kMostTypes = 4;
constexpr std::size_t kNoteWidth = 32;  // columns that others make room for

constexpr std::array<const char*, 13> kHelp = {
    "arrows, j k      move; PgUp PgDn, Home End, g G: further",
    "s, r             sort by the next column; backwards",
    "/                filter by name, user, queue or phase; Enter keeps, Esc drops it",
    "w, Enter         why the selected job is in the phase it is in",
    "l                its output, as it comes; again: its standard error",
    "c                cancel it (asks)",
    "e                what happened to it; the newest comes last",
    "a                hide or show those that have ended",
    "[ ]              scroll the pane",
    "Esc              close the pane; drop the filter",
    "Ctrl-L           draw everything again",
    "?                this help",
    "q, Ctrl-C        quit; jobs go on"};

Ink InkOf(const std::string& phase) {
  if (phase == "running") return Ink::kGreen;
  if (phase == "failed") return Ink::kRed;
  if (phase == "waiting" || phase == "paused" || phase == "starting") return Ink::kYellow;
  return Ink::kDim;
}

int HeadRows(const TopModel& model) {
  return 2 + static_cast<int>(std::clamp<std::size_t>(model.gpus.size(), 1, kMostTypes));
}

int PaneRows(const TopFrame& frame, int rows) {
  if (frame.help) return static_cast<int>(kHelp.size()) + 1;
  return frame.pane.title.empty() ? 0 : std::max(4, (rows - 6) / 2);
}

void DrawHead(const TopModel& model, const TopFrame& frame, Screen& screen) {
  int col = screen.Put(0, 0, "muster top", Ink::kBold);
  col = screen.Put(0, col, fmt::format("  musterd {} rev {}  ", model.version, model.revision));
  col = model.fault.empty() ? screen.Put(0, col, "live", Ink::kGreen)
                            : screen.Put(0, col, model.fault, Ink::kRed);
  const auto clock = Clock(frame.now_ms);
  const int at = screen.cols() - static_cast<int>(clock.size());
  if (at > col + 1) screen.Put(0, at, clock, Ink::kDim);
  int row = 1;
  if (model.gpus.empty()) screen.Put(row++, 0, "no GPUs", Ink::kDim);
  for (std::size_t i = 0; i < std::min(model.gpus.size(), kMostTypes); ++i) {
    const auto& gpus = model.gpus[i];
    const auto full = gpus.total == 0 ? 0 : static_cast<int>(gpus.held * kBarWidth / gpus.total);
    col = screen.Put(row, 0, fmt::format("{:<10.10} [", gpus.type));
    col = screen.Put(row, col, std::string(static_cast<std::size_t>(full), '#'), Ink::kGreen);
    col = screen.Put(row, col, std::string(static_cast<std::size_t>(kBarWidth - full), '.'),
                     Ink::kDim);
    screen.Put(row++, col,
               fmt::format("] {} held, {} free, {} GPUs{}{}", gpus.held, gpus.total - gpus.held,
                           gpus.total, gpus.is_virtual ? " (virtual)" : "",
                           i + 1 == kMostTypes && model.gpus.size() > kMostTypes ? " ..." : ""));
  }
  std::string phases;
  for (const auto& [phase, count] : model.ByPhase()) {
    fmt::format_to(std::back_inserter(phases), "  {} {}", count, phase);
  }
  screen.Put(row, 0,
             fmt::format("nodes {}/{}   jobs{}{}", model.nodes_ready, model.nodes,
                         phases.empty() ? "  none wait or run" : phases,
                         model.more ? "  (and more)" : ""));
}

constexpr std::size_t kColumns = 7;
using Cells = std::array<std::string, kColumns>;

// Four or five letters: "42s", "12m", "3h05", "4d".
std::string Brief(std::int64_t ms) {
  const auto seconds = std::max<std::int64_t>(0, ms) / 1000;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86'400) return fmt::format("{}h{:02}", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d", seconds / 86'400);
}

Cells CellsOf(const TopJob& job, std::int64_t now_ms) {
  const bool ran = job.ran_ms > 0 || job.phase == "running";
  return {std::to_string(job.id),
          Clean(job.name),
          Clean(job.user),
          Clean(job.queue),
          job.phase,
          job.gpus,
          ran ? Brief(job.RanMs(now_ms)) : ""};
}

struct Column {
  const char* name;
  std::size_t least, most;
  TopSort sort;
  std::size_t width = 0;
};

// As wide as what stands in them; the note gets what is left, and others give way to it.
std::vector<Column> ColumnsFor(const std::vector<const TopJob*>& list, const TopFrame& frame,
                               TopSort sort, int cols) {
  const std::size_t room = static_cast<std::size_t>(std::max(0, cols));
  std::vector<Column> columns = {
      {"ID", 9, 9, TopSort::kId},       {"NAME", 8, 28, TopSort::kName},
      {"USER", 5, 12, TopSort::kUser},  {"QUEUE", 6, 24, TopSort::kQueue},
      {"PHASE", 9, 9, TopSort::kPhase}, {"GPUS", 8, 8, TopSort::kGpus},
      {"RAN", 5, 5, TopSort::kRan}};
  std::size_t note = 4;
  for (auto& column : columns) {
    column.width = std::string_view(column.name).size() + (column.sort == sort ? 1 : 0);
  }
  for (const auto* job : list) {
    const auto cells = CellsOf(*job, frame.now_ms);
    for (std::size_t i = 0; i < kColumns; ++i) {
      columns[i].width = std::max(columns[i].width, std::min(columns[i].most, Columns(cells[i])));
    }
    note = std::max(note, job->note.size());
  }
  std::size_t used = kColumns;  // a gap behind each
  for (const auto& column : columns) used += column.width;
  while (used + std::min(note, kNoteWidth) > room) {
    auto widest =
        std::max_element(columns.begin(), columns.end(), [](const auto& a, const auto& b) {
          return a.width - std::min(a.width, a.least) < b.width - std::min(b.width, b.least);
        });
    if (widest->width <= widest->least) break;
    --widest->width;
    --used;
  }
  return columns;
}

void DrawRow(const TopJob& job, const std::vector<Column>& columns, const TopFrame& frame, int row,
             Screen& screen) {
  const auto cells = CellsOf(job, frame.now_ms);
  int col = 0;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const auto sort = columns[i].sort;
    const bool dim = job.ended || (sort == TopSort::kGpus && job.asks);
    screen.Put(row, col, Cut(cells[i], columns[i].width),
               sort == TopSort::kPhase ? InkOf(job.phase)
               : dim                   ? Ink::kDim
                                       : Ink::kPlain);
    col += static_cast<int>(columns[i].width) + 1;
  }
  const int room = screen.cols() - col;
  if (room > 0) {
    screen.Put(row, col, Cut(Clean(job.note), static_cast<std::size_t>(room)), Ink::kDim);
  }
}

void DrawTable(TopModel& model, TopFrame& frame, int top, int rows, Screen& screen) {
  const auto list = model.Rows(frame.now_ms);
  const auto columns = ColumnsFor(list, frame, model.sort(), screen.cols());
  int col = 0;
  for (const auto& column : columns) {
    const bool by = column.sort == model.sort();
    screen.Put(top, col, fmt::format("{}{}", column.name, by ? (model.reversed() ? "^" : "v") : ""),
               Ink::kBold);
    col += static_cast<int>(column.width) + 1;
  }
  screen.Put(top, col, "NOTE", Ink::kBold);
  const auto* const selected = model.Selected(frame.now_ms);
  const auto shown = static_cast<std::size_t>(std::max(1, rows));
  const auto at =
      static_cast<std::size_t>(std::find(list.begin(), list.end(), selected) - list.begin());
  if (at < frame.first) frame.first = at;
  if (at >= frame.first + shown && at < list.size()) frame.first = at - shown + 1;
  frame.first = std::min(frame.first, list.size() > shown ? list.size() - shown : 0);
  for (std::size_t i = 0; i < shown && frame.first + i < list.size(); ++i) {
    const auto* job = list[frame.first + i];
    const int row = top + 1 + static_cast<int>(i);
    DrawRow(*job, columns, frame, row, screen);
    if (job == selected) screen.Fill(row, Ink::kInverse);
  }
  if (list.empty()) {
    screen.Put(top + 1, 0,
               model.filter().empty() ? "no jobs wait or run" : "no job matches the filter",
               Ink::kDim);
  }
}

// Returns how many lines can be scrolled away.
std::size_t DrawPane(const TopFrame& frame, int top, int rows, Screen& screen) {
  screen.Put(top, 0, fmt::format("{:-<{}}", "-- " + frame.pane.title + " ", screen.cols()),
             Ink::kCyan);
  std::vector<std::string> wrapped;
  const auto width = static_cast<std::size_t>(screen.cols());
  for (const auto& line : frame.pane.lines) {
    // What is told in words breaks between them; what a job printed may break anywhere.
    for (auto& part : Wrap(line, width, frame.pane.end ? 0 : frame.pane.indent)) {
      wrapped.push_back(std::move(part));
    }
  }
  const auto room = static_cast<std::size_t>(std::max(1, rows - 1));
  const auto most = wrapped.size() > room ? wrapped.size() - room : 0;
  const auto back = std::min(frame.pane.back, most);
  const auto first = frame.pane.end ? most - back : back;
  for (std::size_t i = 0; i < room && first + i < wrapped.size(); ++i) {
    screen.Put(top + 1 + static_cast<int>(i), 0, wrapped[first + i]);
  }
  if (most > 0) {  // more than there is room for
    const auto where = fmt::format(" {}-{} of {}, [ ] scroll ", first + 1,
                                   std::min(first + room, wrapped.size()), wrapped.size());
    const int at = screen.cols() - static_cast<int>(where.size()) - 2;
    if (at > static_cast<int>(Columns(frame.pane.title)) + 6) {
      screen.Put(top, at, where, Ink::kCyan);
    }
  }
  return most;
}

}  // namespace

int TableRows(const TopModel& model, const TopFrame& frame, int rows) {
  return std::max(1, rows - HeadRows(model) - 1 - PaneRows(frame, rows) - 1);
}

void DrawTop(TopModel& model, TopFrame& frame, Screen& screen) {
  screen.Clear();
  DrawHead(model, frame, screen);
  const int head = HeadRows(model);
  const int pane = PaneRows(frame, screen.rows());
  DrawTable(model, frame, head, TableRows(model, frame, screen.rows()), screen);
  const int below = screen.rows() - 1 - pane;
  if (pane > 0 && below > head) {
    // The table may have drawn where a small screen has no room for both.
    TopFrame shown = frame;
    if (frame.help) shown.pane = {"help", {kHelp.begin(), kHelp.end()}, false, 0, 17};
    const auto most = DrawPane(shown, below, pane, screen);
    frame.pane.back = std::min(frame.pane.back, frame.help ? frame.pane.back : most);
  }
  const int last = screen.rows() - 1;
  if (!frame.prompt.empty()) {
    screen.Put(last, 0, frame.prompt, Ink::kBold);
    return;
  }
  const std::string keys =
      "s sort  r reverse  / filter  w why  l logs  e events  c cancel  ? help  q quit";
  screen.Put(last, 0,
             model.filter().empty() ? keys : "filter: " + model.filter() + "   (/ changes it)",
             Ink::kDim);
}

}  // namespace muster::cli

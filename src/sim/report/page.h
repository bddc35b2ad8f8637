// Page: tables and plots as one HTML page that needs nothing else, and the plots as files.
//
// No script, no font, no picture is fetched: the page can be mailed and opened without a network.
// Each plot is drawn twice, for a wide window and for a narrow one, because a drawing that is
// merely shrunk has labels that nobody can read. It is written so that it is well-formed XML as
// well. Everything follows from what it is given: no clock is read.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/svg.h"

namespace muster::sim::report {

struct File {
  std::string name;
  std::string shows;  // in a few words
  std::string text;
};

inline constexpr const char* kPageName = "index.html";

struct Cell {
  std::string text;
  bool best = false;
};

struct Grid {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<Cell>> rows = {};  // the first cell names the row
  std::string note = {};                     // below it
};

struct Plot {
  std::string name;  // of the file, without its ending: small letters, digits and -
  Caption caption;
  std::string note;  // below it
  std::function<Drawing(double width)> draw;
};

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  // What it was made from, a line each.
  void Add(const std::vector<std::pair<std::string, std::string>>& facts);
  void Add(const Grid& grid);
  void Add(const Plot& plot);
  void Heading(const std::string& text);
  // The page first, then a file a plot.
  std::vector<File> Finish() &&;

 private:
  std::string title_;
  std::string body_;
  std::vector<File> plots_;
};

// Letters, digits and - of a name, for that of a file.
std::string FileName(const std::string& name);

// The files that the report with this page consists of, beside the page; none: it is not ours.
bool IsReport(const std::string& page);
std::vector<std::string> PlotsOf(const std::string& page);

}  // namespace muster::sim::report

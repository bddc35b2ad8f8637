// Table: a file of rows with a head line, as public traces come: CSV or TSV, plain or gzipped.
//
// A cell is asked for by the name of its column, so that files with more columns, or in another
// order, are read as well. What is wrong is said with file and line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/trace/files.h"

namespace muster::sim {

class Table {
 public:
  static Result<Table> Read(const std::string& path, const TraceFiles& files = {});
  // From a text that was read already; `path` is what mistakes are told with, `head` the names of
  // the columns where the text itself has no line for them.
  static Result<Table> FromText(const std::string& path, std::string_view text,
                                char separator = ',', std::vector<std::string> head = {});

  std::size_t rows() const { return cells_.size(); }
  bool Has(std::string_view column) const { return Find(column) < head_.size(); }
  // The column's place in every row, for Text and the numbers below.
  Result<std::size_t> Column(std::string_view name) const;
  const std::vector<std::string>& head() const { return head_; }

  const std::string& Text(std::size_t row, std::size_t column) const { return cells_[row][column]; }
  Result<double> Number(std::size_t row, std::size_t column) const;
  Result<std::int64_t> Integer(std::size_t row, std::size_t column) const;
  // "workload-1.csv:17: "
  std::string Where(std::size_t row) const;

 private:
  std::size_t Find(std::string_view column) const;

  std::string path_;
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> cells_;
  std::vector<std::size_t> lines_;  // of each row, from 1
};

}  // namespace muster::sim

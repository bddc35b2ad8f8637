// JobLayout: which column of a table says what about a job.
//
// A format is mostly a layout; what is peculiar about it is done by `finish`, row by row. A column
// with an empty name does not exist in the format. Mistakes are told with file and line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "sim/jobs/trace_job.h"
#include "sim/trace/table.h"

namespace muster::sim {

// Of a time in a trace: three hundred years.
inline constexpr double kMostTraceMs = 300.0 * 365 * 86'400'000;

struct JobLayout {
  std::string_view name = {}, user = {}, queue = {};
  std::string_view submit = {}, gpus = {}, duration = {}, deadline = {};
  std::string_view model = {};
  std::int64_t unit_ms = 1000;  // of its times
  // Completes the job of a row.
  std::function<Result<void>(std::size_t row, TraceJob& job)> finish = {};
};

// The jobs in the order of the table, with times as the file has them. A job without a name is
// called by its row, one that asks for no GPU is left out.
Result<JobTrace> ReadRows(const Table& table, const JobLayout& layout);

// A time in that unit, not negative and no longer than kMostTraceMs.
Result<std::int64_t> ReadMs(const Table& table, std::size_t row, std::size_t column,
                            std::int64_t unit_ms);

}  // namespace muster::sim

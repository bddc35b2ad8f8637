#include "sim/jobs/read_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/jobs/formats.h"
#include "sim/trace/table.h"

namespace muster::sim {
namespace {

// Of all jobs, one after the other: three million years. So no moment of a play is too late for a
// whole number, whatever the policy does.
constexpr double kMostMsTogether = 1e17;

struct Format {
  const char* name;
  std::vector<std::string_view> columns;  // by which it is known
  Result<JobTrace> (*read)(const Table&);
};

// The first whose columns are all there.
const std::vector<Format>& Formats() {
  static const std::vector<Format> formats = {
      {"plain", {"submit_s", "gpus", "duration_s"}, ReadPlain},
      {"philly", {"timestamp", "duration", "num_gpus", "cluster"}, ReadPhilly},
      {"chronus", {"num_gpu", "submit_time", "expect_time_list"}, ReadChronus},
      {"muri", {"num_gpu", "submit_time", "iteration_time"}, ReadMuri},
      {"elasticflow", {"num_gpu", "submission_time", "deadline"}, ReadElasticFlow},
      {"elasticflow", {"num_gpu", "submit_time", "ddl"}, ReadElasticFlow},
      {"tiresias", {"num_gpu", "submit_time", "duration", "interval"}, ReadTiresias},
  };
  return formats;
}

Result<JobTrace> ReadWithoutHead(const std::string& path, std::string_view text,
                                 std::size_t columns, const TraceFiles& files) {
  auto head = GavelHead(columns);
  const bool gavel = !head.empty();
  if (!gavel) head = ShockwaveHead(columns);
  if (head.empty())
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} has {} columns with tabs between them", path, columns),
                "Gavel's traces have 7 or 10, Shockwave's 12");
  const auto table = Table::FromText(path, text, '\t', std::move(head));
  if (!table) return tl::unexpected(table.error());
  auto trace = gavel ? ReadGavel(*table, path, files) : ReadShockwave(*table);
  if (trace) trace->format = gavel ? "gavel" : "shockwave";
  return trace;
}

Result<JobTrace> ReadWithHead(const std::string& path, std::string_view text) {
  const auto table = Table::FromText(path, text);
  if (!table) return tl::unexpected(table.error());
  for (const auto& format : Formats()) {
    const auto has = [&](std::string_view column) { return table->Has(column); };
    if (!std::ranges::all_of(format.columns, has)) continue;
    auto trace = format.read(*table);
    if (trace) trace->format = format.name;
    return trace;
  }
  constexpr std::size_t kTold = 200;  // it may be anything
  auto columns = fmt::format("{}", fmt::join(table->head(), ", "));
  if (columns.size() > kTold) columns = columns.substr(0, kTold) + "...";
  return Fail(ErrorCode::kInvalid, path + " is no trace of jobs: its columns are " + columns,
              "the simplest has name,user,queue,submit_s,gpus,duration_s; the others are in "
              "docs/lab.md");
}

std::size_t TabsIn(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text.substr(0, text.find('\n')), '\t'));
}

// By submission, the first at 0.
Result<JobTrace> Ordered(const std::string& path, Result<JobTrace> trace) {
  if (!trace) return trace;
  if (trace->jobs.empty())
    return Fail(ErrorCode::kInvalid, path + " has no job that asks for a GPU" +
                                         (trace->format == "past" ? " and has ended" : ""));
  std::ranges::stable_sort(trace->jobs, {}, &TraceJob::submit_ms);
  const auto first_ms = trace->jobs.front().submit_ms;
  double together_ms = 0;
  for (auto& job : trace->jobs) {
    job.submit_ms -= first_ms;
    if (job.deadline_ms) *job.deadline_ms -= first_ms;
    together_ms += static_cast<double>(job.duration_ms);
  }
  if (together_ms > kMostMsTogether) {
    return Fail(ErrorCode::kInvalid, path + ": its jobs take more than three million years",
                "look at the unit of its durations");
  }
  return trace;
}

}  // namespace

Result<JobTrace> ReadJobs(const std::string& path, const TraceFiles& files) {
  const auto text = files.Read(path);
  if (!text) return tl::unexpected(text.error());
  if (IsPast(*text)) return Ordered(path, ReadPast(path, *text));
  const auto tabs = TabsIn(*text);
  return Ordered(
      path, tabs > 0 ? ReadWithoutHead(path, *text, tabs + 1, files) : ReadWithHead(path, *text));
}

Result<JobTrace> ReadJobsText(const std::string& name, std::string_view text) {
  if (TabsIn(text) > 0) {
    return Fail(ErrorCode::kInvalid, name + " has no head line",
                "formats with tabs are read from files only: `muster policy diff --trace FILE`");
  }
  return Ordered(name, ReadWithHead(name, text));
}

}  // namespace muster::sim

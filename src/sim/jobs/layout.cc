#include "sim/jobs/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster::sim {
namespace {

constexpr std::int64_t kMostGpus = 1'000'000;

// The columns of a layout, found in a table.
class Rows {
 public:
  Rows(const Table& table, const JobLayout& layout) : table_(table), layout_(layout) {}

  Result<void> Find() {
    const std::pair<std::string_view, std::size_t Rows::*> wanted[] = {
        {layout_.name, &Rows::name_},         {layout_.user, &Rows::user_},
        {layout_.queue, &Rows::queue_},       {layout_.submit, &Rows::submit_},
        {layout_.gpus, &Rows::gpus_},         {layout_.duration, &Rows::duration_},
        {layout_.deadline, &Rows::deadline_}, {layout_.model, &Rows::model_}};
    for (const auto& [name, place] : wanted) {
      if (name.empty()) continue;
      const auto column = table_.Column(name);
      if (!column) return tl::unexpected(column.error());
      this->*place = *column;
    }
    return {};
  }

  Result<TraceJob> Read(std::size_t row) const {
    TraceJob job;
    job.name = layout_.name.empty() ? fmt::format("job-{}", row + 1) : table_.Text(row, name_);
    if (!layout_.user.empty()) job.user = table_.Text(row, user_);
    if (!layout_.queue.empty()) job.queue = table_.Text(row, queue_);
    if (!layout_.model.empty()) job.model = table_.Text(row, model_);
    if (auto read = Time(row, layout_.submit, submit_, job.submit_ms); !read)
      return tl::unexpected(read.error());
    if (auto read = Time(row, layout_.duration, duration_, job.duration_ms); !read)
      return tl::unexpected(read.error());
    if (!layout_.deadline.empty() && !table_.Text(row, deadline_).empty()) {
      const auto deadline = ReadMs(table_, row, deadline_, layout_.unit_ms);
      if (!deadline) return tl::unexpected(deadline.error());
      job.deadline_ms = *deadline;
    }
    const auto gpus = table_.Integer(row, gpus_);
    if (!gpus) return tl::unexpected(gpus.error());
    if (*gpus < 0 || *gpus > kMostGpus)
      return Fail(ErrorCode::kInvalid, fmt::format("{}{} is {}: 1 to {} will do", table_.Where(row),
                                                   layout_.gpus, *gpus, kMostGpus));
    job.gpus = *gpus;
    return job;
  }

 private:
  Result<void> Time(std::size_t row, std::string_view name, std::size_t column,
                    std::int64_t& into) const {
    if (name.empty()) return {};
    const auto ms = ReadMs(table_, row, column, layout_.unit_ms);
    if (!ms) return tl::unexpected(ms.error());
    into = *ms;
    return {};
  }

  const Table& table_;
  const JobLayout& layout_;
  std::size_t name_ = 0, user_ = 0, queue_ = 0, submit_ = 0, gpus_ = 0, duration_ = 0;
  std::size_t deadline_ = 0, model_ = 0;
};

}  // namespace

Result<std::int64_t> ReadMs(const Table& table, std::size_t row, std::size_t column,
                            std::int64_t unit_ms) {
  const auto value = table.Number(row, column);
  if (!value) return tl::unexpected(value.error());
  const double ms = *value * static_cast<double>(unit_ms);
  if (ms < 0 || ms > kMostTraceMs)
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}{} is {}: times are not negative, and at most 300 years",
                            table.Where(row), table.head()[column], table.Text(row, column)));
  return std::llround(ms);
}

Result<JobTrace> ReadRows(const Table& table, const JobLayout& layout) {
  Rows rows(table, layout);
  if (auto found = rows.Find(); !found) return tl::unexpected(found.error());
  JobTrace trace;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    auto job = rows.Read(row);
    if (!job) return tl::unexpected(job.error());
    if (job->gpus == 0) {
      ++trace.left_out;
      continue;
    }
    if (layout.finish) {
      if (auto finished = layout.finish(row, *job); !finished)
        return tl::unexpected(finished.error());
    }
    if (job->queue.empty())
      return Fail(ErrorCode::kInvalid, table.Where(row) + "the job names no queue");
    job->duration_ms = std::max<std::int64_t>(1, job->duration_ms);
    trace.jobs.push_back(std::move(*job));
  }
  return trace;
}

}  // namespace muster::sim

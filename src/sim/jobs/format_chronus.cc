// Chronus (SoCC '21): minutes. Its `user` is a virtual cluster. `expect_time_list` counts from the
// submission (it is a little above the duration); with jobs that will take any time it says
// nothing.
#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {

Result<JobTrace> ReadChronus(const Table& table) {
  const auto best_effort = table.Column("best_effort");
  if (!best_effort) return tl::unexpected(best_effort.error());
  return ReadRows(table, {.name = "job_id",
                          .queue = "user",
                          .submit = "submit_time",
                          .gpus = "num_gpu",
                          .duration = "duration",
                          .deadline = "expect_time_list",
                          .model = "model_name",
                          .unit_ms = 60'000,
                          .finish = [&](std::size_t row, TraceJob& job) -> Result<void> {
                            if (table.Text(row, *best_effort) != "0") job.deadline_ms.reset();
                            if (job.deadline_ms) *job.deadline_ms += job.submit_ms;
                            return {};
                          }});
}

}  // namespace muster::sim

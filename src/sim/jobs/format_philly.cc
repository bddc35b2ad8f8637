// The Philly trace as the artifact of Pollux has it: a row for each job, with the date and time at
// which it was submitted, and the virtual cluster it was submitted to. It names no job and no user.
#include <fmt/format.h>

#include "base/units.h"
#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {

Result<JobTrace> ReadPhilly(const Table& table) {
  const auto column = table.Column("timestamp");
  if (!column) return tl::unexpected(column.error());
  return ReadRows(table, {.queue = "cluster",
                          .gpus = "num_gpus",
                          .duration = "duration",
                          .finish = [&](std::size_t row, TraceJob& job) -> Result<void> {
                            std::string text = table.Text(row, *column);
                            if (text.size() == 19 && text[10] == ' ') text[10] = 'T';
                            const auto at_ms = ParseTimeMs(text + ".000Z");
                            if (!at_ms)
                              return Fail(ErrorCode::kInvalid,
                                          fmt::format("{}timestamp is no time: \"{}\"",
                                                      table.Where(row), table.Text(row, *column)),
                                          "write it as 2017-10-09 07:01:55");
                            job.submit_ms = *at_ms;
                            return {};
                          }});
}

}  // namespace muster::sim

// Shockwave (NSDI '23): no head line. The duration is the trace's own; that of jobs whose batch
// grows while they train (mode `accordion` or `gns`) cannot be had from their steps.
#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {

std::vector<std::string> ShockwaveHead(std::size_t columns) {
  if (columns != 12) return {};
  return {"job type",
          "command",
          "working directory",
          "steps argument",
          "needs data",
          "total steps",
          "gpus",
          "mode",
          "priority",
          "slo",
          "duration (s)",
          "arrival (s)"};
}

Result<JobTrace> ReadShockwave(const Table& table) {
  return ReadRows(
      table,
      {.submit = "arrival (s)", .gpus = "gpus", .duration = "duration (s)", .model = "job type"});
}

}  // namespace muster::sim

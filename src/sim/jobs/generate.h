// GenerateJobs: workloads of any size for people who have no trace.
//
// Arrivals are independent of each other at a constant rate; sizes and durations are drawn as
// published. `gavel`: the rule of Gavel's continuous traces (OSDI '20). `philly`: the Philly trace
// in numbers, counted from the file that comes with Pollux (OSDI '21). Who submits to which queue
// is ours where the publication does not say. The same seed gives the same jobs on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/jobs/trace_job.h"

namespace muster::sim {

struct GenerateOptions {
  std::int64_t jobs = 0;
  std::uint64_t seed = 0;
  std::string like = "gavel";
  double jobs_per_hour = 0;  // 0: as published
};

// The names that `like` may have.
std::vector<std::string> Likenesses();

Result<std::vector<TraceJob>> GenerateJobs(const GenerateOptions& options);

// As a file that ReadJobs reads.
std::string WriteJobs(const std::vector<TraceJob>& jobs);

}  // namespace muster::sim

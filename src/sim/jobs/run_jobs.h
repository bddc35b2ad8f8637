// RunJobs: a trace of rigid jobs under one policy, on a cluster of equal nodes.
//
// The result follows from the trace, the policy and the size of the cluster, but for `wall_s`. A
// job waits until its first start; what it waits after a preemption shows in its completion time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/policy.h"
#include "sim/jobs/estimates.h"
#include "sim/jobs/trace_job.h"

namespace muster::sim {

struct JobsOptions {
  std::string workload;  // a file for ReadJobs; or what the jobs are called that are handed over
  std::string policy;
  std::int64_t nodes = 0;  // 0: as NodesOf says
  std::int64_t gpus_per_node = 8;
  bool estimates = false;  // score forecasts of the start as well
  bool over_time = false;  // keep who held GPUs when
  // Told the share of jobs that have ended, also while nobody ends; an error ends the run.
  std::function<Result<void>(double)> progress = {};
  engine::Policy muster = {};  // how `muster` decides
};

struct JobsResult {
  struct Stretch {
    double start_s = 0;
    double end_s = 0;
    std::int64_t gpus = 0;
  };
  struct Job {
    std::string name;
    double wait_s = 0;
    double jct_s = 0;  // from its submission to its end
    std::string queue;
    double submit_s = 0;
    std::vector<Stretch> stretches = {};  // where they are kept, in the order of time
  };
  struct Use {  // until the next one
    double at_s = 0;
    std::int64_t gpus = 0;
  };
  std::vector<Job> jobs;         // by submission
  std::vector<Use> gpus_in_use;  // where they are kept: changes only
  std::int64_t nodes = 0;
  std::int64_t gpus_per_node = 0;
  double mean_wait_s = 0;
  double p99_wait_s = 0;  // interpolated between the two nearest
  double mean_jct_s = 0;
  double p99_jct_s = 0;
  double makespan_s = 0;       // from the first submission to the last end
  double utilisation_pct = 0;  // GPU-time used of what the cluster had until then
  std::int64_t preemptions = 0;
  std::int64_t deadlines = 0;    // jobs that have one
  double deadlines_met_pct = 0;  // of those; no policy is told of them
  std::optional<EstimateScore> estimates;
  double wall_s = 0;  // reading the file included
};

// The names that `policy` may have.
std::vector<std::string> JobsPolicies();

// Enough nodes for the demand (sim/jobs/demand.h) of this share of the time, and for the largest
// job.
std::int64_t NodesFor(const std::vector<TraceJob>& jobs, std::int64_t gpus_per_node,
                      double covered = 0.95);

// Those of a file that knows of how many GPUs they were, else for the demand.
std::int64_t NodesOf(const JobTrace& trace, std::int64_t gpus_per_node);

Result<JobsResult> RunJobs(const JobsOptions& options, Clock& clock);
// These jobs instead of those of the file.
Result<JobsResult> RunJobs(const JobsOptions& options, const std::vector<TraceJob>& jobs,
                           Clock& clock);

}  // namespace muster::sim

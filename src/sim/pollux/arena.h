// Arena: a workload of the Pollux set under one policy, interval by interval.
//
// Every job advances to the end of the interval, then the policy decides for those that are there,
// so the first start is at the next full interval. Deterministic for a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/policy.h"
#include "sim/trace/files.h"

namespace muster::sim {

struct ArenaOptions {
  std::string profiles;  // a folder laid out as the published one
  std::string workload;  // name, time, application, num_replicas, batch_size
  std::string policy;
  std::uint64_t seed = 0;
  int nodes = 16;
  int gpus_per_node = 4;
  engine::Policy muster = {};  // how `muster` decides
  TraceFiles files = {};
  std::size_t most_jobs = 0;  // 0: any number
  // Told the share of jobs that have ended, also while a decision is sought for long; its error
  // ends the run.
  std::function<Result<void>(double)> progress = {};
};

struct ArenaResult {
  struct Stretch {  // on the same GPUs
    std::int64_t start_s = 0;
    std::int64_t end_s = 0;
    int gpus = 0;
  };
  struct Job {
    std::string name;
    std::int64_t jct_s = 0;
    std::string application;
    std::int64_t submit_s = 0;
    std::vector<Stretch> stretches;  // in the order of time
  };
  struct Use {  // until the next one
    std::int64_t at_s = 0;
    int gpus = 0;
  };
  std::vector<Job> jobs;         // in the order of the workload
  std::vector<Use> gpus_in_use;  // changes only: from the first start to the last end, which is 0
  int gpus = 0;                  // that there are
  double mean_jct_s = 0;
  double p99_jct_s = 0;  // interpolated between the two nearest
  std::int64_t makespan_s = 0;
  std::int64_t restarts = 0;
  double policy_ms_p50 = 0;
  double wall_s = 0;  // reading the files included
};

// The names that `policy` may have.
std::vector<std::string> ArenaPolicies();

Result<ArenaResult> RunArena(const ArenaOptions& options, Clock& clock);

}  // namespace muster::sim

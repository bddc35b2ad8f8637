// Pooling: what it is worth to share GPUs between queues instead of dividing them.
//
// The same trace, on the same GPUs, under the production engine: `fixed` (each queue has its part
// and never more), `guaranteed` (the same parts as quotas; what is idle is lent, and taken back)
// and `elastic` (as that, and jobs of several GPUs run on half to twice of what they ask for). A
// job that is stopped, moved or resized goes on where it was after 30 s without progress. Last,
// `fixed-same-wait`: the least GPUs with which fixed parts have the mean wait of `guaranteed`.
// Parts are chosen in hindsight (see Division), each at least the queue's largest job, which would
// wait for ever otherwise; of both divisions the one with the shorter mean wait when fixed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim/jobs/trace_job.h"

namespace muster::sim {

struct PoolingOptions {
  std::string workload;                    // a file for ReadJobs
  std::vector<double> percentiles = {95};  // of the demand: a size of the cluster each
  std::int64_t nodes = 0;                  // instead: so many
  std::int64_t gpus_per_node = 8;
  std::function<void(const std::string&)> progress = {};  // told what is played now
};

// Times of jobs are over all jobs; shares of GPU time over the time in which jobs come, unless it
// says otherwise.
struct PoolingWay {
  std::string name;
  std::int64_t gpus = 0;
  double utilisation_pct = 0;         // held by jobs
  double utilisation_to_end_pct = 0;  // until the last job has ended
  double idle_while_waiting_pct = 0;  // free while a job waits
  double mean_wait_s = 0;             // to the first start
  double median_wait_s = 0;
  double p90_wait_s = 0;
  double mean_jct_s = 0;  // from its submission to its end
  double makespan_s = 0;
  std::int64_t ended = 0;        // while jobs came
  double jobs_per_gpu_week = 0;  // of those
  std::int64_t preemptions = 0;
  std::int64_t changes = 0;                                   // of size or place
  double lost_gpu_h = 0;                                      // held without progress
  std::vector<std::pair<std::int64_t, std::int64_t>> in_use;  // from that ms on: so many GPUs
};

enum class Division : std::uint8_t {
  kPercentile,  // for all queues the same percentile of their own demand
  kWork,        // in proportion to the GPU time of their jobs
};
using Parts = std::map<std::string, std::int64_t>;  // GPUs by queue

struct PoolingSize {
  double percentile = 0;  // 0: the number of nodes was given
  std::int64_t nodes = 0;
  Division division = Division::kPercentile;
  Parts parts;
  std::vector<PoolingWay> ways;  // as above
};

struct PoolingResult {
  struct Queue {
    std::string name;
    std::int64_t jobs = 0;
    std::int64_t largest = 0;  // GPUs of one job
    std::int64_t p95 = 0;      // of its own demand
    std::int64_t peak = 0;
  };
  std::int64_t jobs = 0;
  double span_s = 0;       // in which jobs come
  double mean_demand = 0;  // GPUs that would be busy all that time with what is asked for
  std::int64_t gpus_per_node = 0;
  std::vector<Queue> queues;  // by name
  std::vector<PoolingSize> sizes;
};

// The parts of so many GPUs. Fails where there are too few for the largest job of each queue.
Result<Parts> Divide(const std::vector<TraceJob>& jobs, std::int64_t gpus, Division division);

Result<PoolingResult> RunPooling(const PoolingOptions& options);

}  // namespace muster::sim

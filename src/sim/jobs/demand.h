// Demand: how many GPUs the jobs of a trace would hold if each started the moment it came.
//
// Looked at during the time in which jobs come (where all come at once: until the last would end),
// because a trace that runs out says nothing about the size of a cluster. Of one queue it counts
// the same time, most of which a small queue may spend asking for nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/jobs/trace_job.h"

namespace muster::sim {

// Jobs come from 0 until then.
std::int64_t SpanMs(const std::vector<TraceJob>& jobs);

class Demand {
 public:
  // Of all jobs, or of those of a queue.
  explicit Demand(const std::vector<TraceJob>& jobs, const std::string* queue = nullptr);

  std::int64_t jobs() const { return jobs_; }
  std::int64_t largest() const { return largest_; }  // GPUs of one job
  double gpu_ms() const { return gpu_ms_; }          // that all of them take
  // During this share of the time, 0 to 1, it is no more.
  std::int64_t At(double share) const;
  std::int64_t Peak() const { return At(1); }

 private:
  std::int64_t jobs_ = 0;
  std::int64_t largest_ = 0;
  double gpu_ms_ = 0;
  std::int64_t span_ms_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> within_ms_;  // GPUs: no more for so long
};

}  // namespace muster::sim

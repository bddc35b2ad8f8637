// Gavel (OSDI '20): shares of time, carried out in rounds of six minutes; one type of GPU.
//
// Each job has a share X of the time in which it is to run. `gavel-max-min`: the GPU-time of the
// job that gets least is as large as can be, then that of the next, and so on. With one type of GPU
// the linear program has a closed answer, which is used here and is exact: X = min(1, level /
// GPUs), and the level is where the cluster is full. `gavel-makespan`: shares with which all jobs
// end soonest, X = remaining time / the time until then; it knows how long jobs take. A round runs
// the jobs that are furthest behind their share of the time since they came, as many as fit. GPUs
// of a job that ends inside a round idle until the next. A round costs the jobs that are there.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/jobs/policy.h"

namespace muster::sim {

class Gavel : public JobPolicy {
 public:
  enum class Aim : std::uint8_t { kMaxMin, kMakespan };
  static constexpr std::int64_t kRoundMs = 360'000;

  explicit Gavel(Aim aim) : aim_(aim) {}
  void Submitted(const JobPlay& play, JobIndex job) override;
  void Ended(const JobPlay& play, JobIndex job) override;
  void Decide(JobPlay& play) override;
  std::int64_t NextMs() const override { return next_ms_; }

 private:
  void ShareMaxMin(const JobPlay& play);
  void ShareMakespan(const JobPlay& play);
  void RunRound(JobPlay& play);

  Aim aim_;
  std::vector<JobIndex> present_;  // by arrival
  std::vector<double> shares_;     // of those
  std::int64_t asked_gpus_ = 0;    // by all of them together
  std::int64_t next_ms_ = kNeverMs;
};

}  // namespace muster::sim

// Gavel (OSDI '20): shares of time, carried out in rounds of six minutes; one type of GPU.
//
// Shares are those of gavel_shares.h; `gavel-makespan` knows how long jobs take. A round runs the
// jobs that are furthest behind their share of the time since they came, as many as fit. GPUs of a
// job that ends inside a round idle until the next. A round costs the jobs that are there; there
// are none while all of them run.
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
  void RunRound(JobPlay& play);

  Aim aim_;
  std::vector<JobIndex> present_;  // by arrival
  std::int64_t asked_gpus_ = 0;    // by all of them together
  std::int64_t next_ms_ = kNeverMs;
};

}  // namespace muster::sim

// Fifo: strictly in the order of arrival.
//
// Whoever came first starts first; while it does not fit nobody behind it starts either, however
// small. Never stops a job.
#pragma once

#include <deque>

#include "sim/jobs/policy.h"

namespace muster::sim {

class Fifo : public JobPolicy {
 public:
  void Submitted(const JobPlay& play, JobIndex job) override;
  void Ended(const JobPlay& play, JobIndex job) override;
  void Decide(JobPlay& play) override;

 private:
  std::deque<JobIndex> waiting_;
};

}  // namespace muster::sim

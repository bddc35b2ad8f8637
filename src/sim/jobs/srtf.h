// Srtf: shortest remaining time first, with preemption.
//
// At each event all jobs are taken by remaining time (ties: by arrival) and run if they fit in what
// the ones before them leave. It knows how long jobs take, so it stands for no scheduler that could
// be built. Nothing is walked through: of jobs that wait for equally many GPUs only the shortest
// can be next, and who would have to give way is found at the long end of those that run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "sim/jobs/policy.h"

namespace muster::sim {

class Srtf : public JobPolicy {
 public:
  void Submitted(const JobPlay& play, JobIndex job) override;
  void Ended(const JobPlay& play, JobIndex job) override;
  void Decide(JobPlay& play) override;

 private:
  using Key = std::pair<std::int64_t, JobIndex>;  // remaining time, arrival

  bool MayRun(const JobPlay& play, std::int64_t gpus, const Key& key) const;
  void MakeRoom(JobPlay& play, std::int64_t gpus);

  std::map<std::int64_t, std::set<Key>> waiting_;  // by GPUs
};

}  // namespace muster::sim

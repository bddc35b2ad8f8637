// Las: least attained service, as the simulator of Tiresias (NSDI '19) has it; policy `tiresias`.
//
// Three queues by the GPU-time that a job has used: below 3,250 GPU-seconds, below 7,200, above. A
// running job that reaches a limit goes to the end of the next queue and never comes back. At each
// event the queues are walked in turn, those that run before those that wait, each in its order:
// who fits in what is left runs, who does not waits. Who is stopped waits before those who waited.
// Needs no knowledge of durations.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/jobs/policy.h"

namespace muster::sim {

class Las : public JobPolicy {
 public:
  void Submitted(const JobPlay& play, JobIndex job) override;
  void Ended(const JobPlay& play, JobIndex job) override;
  void Decide(JobPlay& play) override;
  std::int64_t NextMs() const override;

 private:
  static constexpr std::size_t kQueues = 3;
  struct Place {
    std::size_t queue = 0;
    std::int64_t rank = 0;       // among those of its queue that run, or that wait
    std::int64_t limit_ms = -1;  // when it reaches the limit of its queue, if it goes on running
  };
  struct Queue {
    std::set<std::pair<std::int64_t, JobIndex>> running;                          // by rank
    std::map<std::int64_t, std::set<std::pair<std::int64_t, JobIndex>>> waiting;  // by GPUs, rank
    std::int64_t running_gpus = 0;
  };

  void Demote(JobPlay& play);
  void Wait(const JobPlay& play, JobIndex job, std::int64_t rank);
  void Leave(const JobPlay& play, JobIndex job);
  std::int64_t KeepWhoFits(JobPlay& play, Queue& queue, std::int64_t room);
  std::int64_t TakeWhoFits(const JobPlay& play, Queue& queue, std::int64_t room,
                           std::vector<JobIndex>& starts);
  void Begin(JobPlay& play, JobIndex job);

  std::array<Queue, kQueues> queues_;
  std::vector<Place> places_;                             // by job
  std::set<std::pair<std::int64_t, JobIndex>> at_limit_;  // who runs, by limit_ms
  std::int64_t back_ = 0;                                 // ranks behind and before all others
  std::int64_t front_ = 0;
};

}  // namespace muster::sim

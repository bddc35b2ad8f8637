// Resizing: the step of a cycle that gives the jobs of a queue the sizes that pay best.
//
// A queue takes part once one of its jobs has reported its speed; then all its preemptible jobs
// whose workers have one whole GPU each are looked at together, not more often than the policy says
// and only when something has changed. What they may hold together is the queue's fair share; how
// it is divided and where the workers sit is engine/elastic.h. Workers whose seat is given up are
// told to leave; the others of their job are promised theirs, or start where room is free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/cluster.h"
#include "engine/elastic.h"
#include "engine/placement.h"

namespace muster::engine {

class Resizing {
 public:
  Resizing(Cluster& cluster, Placement& placement) : cluster_(cluster), placement_(placement) {}

  void Run(std::int64_t now_ms);
  // Workers that the last run told to leave, and jobs whose target it changed.
  std::span<const WorkerRef> told() const { return told_; }
  std::span<const JobId> changed() const { return changed_; }

 private:
  struct Candidate {
    JobId job = kNone;
    ElasticJob elastic;
    SeatedJob seated;
  };

  std::vector<JobId> JobsOf(QueueId queue) const;
  void SetFree(QueueId queue);
  void List(QueueId queue, TypeId type, std::vector<Candidate>& out) const;
  bool TakesPart(const JobState& job) const;
  TypeId HomeOf(const JobState& job) const;
  ElasticJob Weigh(const JobState& job) const;
  void Divide(QueueId queue, TypeId type);
  int Budget(QueueId queue, const std::vector<Candidate>& candidates, int there) const;
  void Leave(const Candidate& candidate, const Seats& seats, std::span<const BankId> banks);
  void Take(const Candidate& candidate, const Seats& seats, std::span<const BankId> banks);

  Cluster& cluster_;
  Placement& placement_;
  std::int64_t now_ms_ = 0;
  std::optional<std::int64_t> last_ms_;
  std::uint64_t seen_ = 0;     // facts, at the last run
  std::vector<bool> divided_;  // by queue: its jobs have targets
  std::vector<WorkerRef> told_;
  std::vector<JobId> changed_;
};

}  // namespace muster::engine

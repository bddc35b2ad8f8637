// MusterJobs: the production engine as a policy of the lab; policy `muster`.
//
// A job is a gang of as many workers as it asks for GPUs, all or none, unless the rules make it
// elastic. Every queue of the trace is a queue of the cluster with the same weight and, unless the
// rules give it one, no quota, so that the engine shares the GPUs out between those that ask and
// takes back what others hold beyond their share. The engine hears of submissions, ends, workers
// that left and the speed of elastic jobs that run; how long a job will take it is told only as far
// as follows from those that have ended.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/cluster.h"
#include "engine/cycle.h"
#include "engine/runtime_history.h"
#include "sim/jobs/policy.h"
#include "sim/jobs/trace_job.h"

namespace muster::sim {

struct MusterRules {
  std::map<std::string, std::int64_t> quotas = {};  // GPUs of a queue; none: 0
  bool limited = false;                             // to their quota
  bool elastic = false;  // jobs of several GPUs run on half of them to twice as many
  engine::Policy policy = {};
};

// What jobs that take about as long have in common.
engine::RuntimeKind RuntimeKindOf(const TraceJob& job);
// A node of the lab, and a job of a trace as the engine knows it.
model::Node LabNode(std::int64_t index, std::int64_t gpus);
model::Job LabJob(const TraceJob& from, JobIndex index, const MusterRules& rules = {});
// Whether there is room for a worker for each of their GPUs: the engine knows all workers of the
// jobs that are there, and all jobs may be.
Result<void> CheckWorkers(const std::vector<TraceJob>& jobs, const MusterRules& rules = {});

class MusterJobs : public JobPolicy {
 public:
  static Result<std::unique_ptr<MusterJobs>> Make(const std::vector<TraceJob>& jobs,
                                                  std::int64_t nodes, std::int64_t gpus_per_node,
                                                  MusterRules rules = {});

  void Submitted(const JobPlay& play, JobIndex job) override;
  void Ended(const JobPlay& play, JobIndex job) override;
  void Decide(JobPlay& play) override;
  std::int64_t NextMs() const override { return next_ms_; }

  // For who watches: what the engine knows, and by which id it knows a job that has come.
  const engine::Cluster& cluster() const { return *cluster_; }
  engine::JobId IdOf(JobIndex job) const { return ids_[job]; }

 private:
  MusterJobs() = default;
  bool Cycle(std::int64_t now_ms);
  void Follow(JobPlay& play);

  MusterRules rules_;
  std::int64_t next_ms_ = kNeverMs;
  std::unique_ptr<engine::Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::vector<engine::JobId> ids_;  // by job; kNone once it has ended
  std::vector<JobIndex> jobs_by_id_;
  engine::RuntimeHistory runtimes_;
  std::vector<JobIndex> changed_;  // by this moment's plans, some of them twice
};

}  // namespace muster::sim

// JobPlay: the event loop in which a trace meets a policy.
//
// Time jumps from event to event: a submission, an end, or a moment that the policy asked for. All
// that falls on one moment is told first (ends, then submissions), then the policy decides once.
// A job that is stopped keeps what it has done and goes on from there. A watcher hears what came of
// each moment. No clock, no chance; an event costs the logarithm of the jobs that run.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim/jobs/policy.h"
#include "sim/jobs/trace_job.h"

namespace muster::sim {

// Told after the policy, so that what it knows may be asked for.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  virtual void Submitted(const JobPlay& /*play*/, JobIndex /*job*/) {}  // and nothing decided yet
  virtual void Started(const JobPlay& /*play*/, JobIndex /*job*/) {}    // or goes on
  virtual void Stopped(const JobPlay& /*play*/, JobIndex /*job*/) {}    // by the policy
  virtual void Ended(const JobPlay& /*play*/, JobIndex /*job*/) {}
  virtual void Decided(const JobPlay& /*play*/) {}  // all about this moment has been said
};

class JobPlay {
 public:
  struct Track {
    std::int64_t done_ms = 0;      // of its duration, when it last stopped or started
    std::int64_t since_ms = -1;    // runs since; -1: does not run
    std::int64_t started_ms = -1;  // for the first time
    std::int64_t ended_ms = -1;
    std::int32_t preemptions = 0;
    bool ran_before = false;  // this moment's decision
    bool touched = false;     // by this moment's decision
  };

  // The trace and the watcher must outlive it. No job may ask for more than `gpus`.
  JobPlay(const std::vector<TraceJob>& jobs, std::int64_t gpus, JobWatcher* watcher = nullptr);

  // Until every job has ended. Fails where the policy lets jobs wait although nothing runs.
  Result<void> Run(JobPolicy& policy);

  std::int64_t now_ms() const { return now_ms_; }
  std::int64_t gpus() const { return gpus_; }
  std::int64_t free_gpus() const { return free_gpus_; }
  const TraceJob& job(JobIndex job) const { return jobs_[job]; }
  const Track& track(JobIndex job) const { return tracks_[job]; }
  bool Runs(JobIndex job) const { return tracks_[job].since_ms >= 0; }
  std::int64_t DoneMs(JobIndex job) const;
  std::int64_t RemainingMs(JobIndex job) const { return jobs_[job].duration_ms - DoneMs(job); }
  // Who runs, by the time of their end.
  const std::set<std::pair<std::int64_t, JobIndex>>& ends() const { return ends_; }
  std::size_t submitted() const { return submitted_; }
  std::size_t ended() const { return ended_; }

  // --- For the policy, while it decides. What is stopped and started again in one moment went on.
  void Start(JobIndex job);
  void Stop(JobIndex job);

 private:
  void LetEnd(JobPolicy& policy);
  void LetCome(JobPolicy& policy);
  void Touch(JobIndex job);
  void Tell();

  const std::vector<TraceJob>& jobs_;
  const std::int64_t gpus_;
  JobWatcher* watcher_;
  std::vector<Track> tracks_;
  std::set<std::pair<std::int64_t, JobIndex>> ends_;
  std::vector<JobIndex> touched_;
  std::int64_t now_ms_ = 0;
  std::int64_t free_gpus_;
  std::size_t submitted_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace muster::sim

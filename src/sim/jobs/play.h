// JobPlay: the event loop in which a trace meets a policy.
//
// Time jumps from event to event: a submission, an end, or a moment that the policy asked for. All
// that falls on one moment is told first (ends, then submissions), then the policy decides once.
// A job that is stopped keeps what it has done and goes on from there; on other than the GPUs it
// asks for it is faster or slower. A watcher hears what came of each moment. No clock, no chance;
// an event costs the logarithm of the jobs that run.
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
  // All about this moment has been said. An error ends the play.
  virtual Result<void> Decided(const JobPlay& /*play*/) { return {}; }
};

// What it costs and brings to change a job.
struct PlayRules {
  std::int64_t restart_ms = 0;  // without progress, for who goes on or whose GPUs change
};
// Of its time on the GPUs it asks for, a job spends this share on what more of them do not speed up
// (Amdahl): 1.82 times as fast on twice as many, 0.53 times on half of them.
inline constexpr double kSerialShare = 0.1;

class JobPlay {
 public:
  struct Track {
    std::int64_t done_ms = 0;     // of its duration, when it last stopped, started or changed
    std::int64_t since_ms = -1;   // runs since; -1: does not run
    std::int64_t resumes_ms = 0;  // makes progress from then on
    std::int64_t end_ms = 0;      // if nothing changes
    std::int64_t gpus = 0;        // while it runs
    double speed = 1;
    std::int64_t started_ms = -1;  // for the first time
    std::int64_t ended_ms = -1;
    std::int32_t preemptions = 0;
    std::int32_t changes = 0;  // of size or place, while it ran
    bool ran_before = false;   // this moment's decision
    bool touched = false;      // by this moment's decision
  };

  // The trace and the watcher must outlive it. No job may ask for more than `gpus`.
  JobPlay(const std::vector<TraceJob>& jobs, std::int64_t gpus, JobWatcher* watcher = nullptr,
          PlayRules rules = {});

  // Until every job has ended. Fails where the policy lets jobs wait although nothing runs, and
  // where the watcher has had enough.
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
  std::size_t running() const { return ends_.size(); }
  std::int64_t lost_gpu_ms() const { return lost_gpu_ms_; }  // held without progress

  // --- For the policy, while it decides. What is stopped and started again in one moment went on.
  void Start(JobIndex job) { Start(job, jobs_[job].gpus); }
  void Start(JobIndex job, std::int64_t gpus);
  void Stop(JobIndex job);
  // Goes on with so many GPUs, or with as many elsewhere.
  void Change(JobIndex job, std::int64_t gpus);

 private:
  void Take(JobIndex job, std::int64_t gpus, std::int64_t restart_ms);
  void Release(JobIndex job);
  void LetEnd(JobPolicy& policy);
  void LetCome(JobPolicy& policy);
  void Touch(JobIndex job);
  Result<void> Tell();

  const std::vector<TraceJob>& jobs_;
  const std::int64_t gpus_;
  JobWatcher* watcher_;
  const PlayRules rules_;
  std::vector<Track> tracks_;
  std::set<std::pair<std::int64_t, JobIndex>> ends_;
  std::vector<JobIndex> touched_;
  std::int64_t now_ms_ = 0;
  std::int64_t free_gpus_;
  std::int64_t lost_gpu_ms_ = 0;
  std::size_t submitted_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace muster::sim

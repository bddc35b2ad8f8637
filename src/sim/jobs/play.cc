#include "sim/jobs/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace muster::sim {

JobPlay::JobPlay(const std::vector<TraceJob>& jobs, std::int64_t gpus, JobWatcher* watcher,
                 PlayRules rules)
    : jobs_(jobs),
      gpus_(gpus),
      watcher_(watcher),
      rules_(rules),
      tracks_(jobs.size()),
      free_gpus_(gpus) {}

Result<void> JobPlay::Run(JobPolicy& policy) {
  while (ended_ < jobs_.size()) {
    std::int64_t next_ms = policy.NextMs();
    if (submitted_ < jobs_.size()) next_ms = std::min(next_ms, jobs_[submitted_].submit_ms);
    if (!ends_.empty()) next_ms = std::min(next_ms, ends_.begin()->first);
    if (next_ms == kNeverMs)
      return Fail(ErrorCode::kInternal, fmt::format("{} jobs wait for ever although nothing runs",
                                                    jobs_.size() - ended_));
    MUSTER_CHECK(next_ms >= now_ms_, "time does not go back");
    now_ms_ = next_ms;
    LetEnd(policy);
    LetCome(policy);
    policy.Decide(*this);
    if (auto goes_on = Tell(); !goes_on) return goes_on;
  }
  return {};
}

std::int64_t JobPlay::DoneMs(JobIndex job) const {
  const Track& track = tracks_[job];
  if (track.since_ms < 0 || now_ms_ <= track.resumes_ms) return track.done_ms;
  const auto ran_ms = static_cast<double>(now_ms_ - track.resumes_ms);
  return track.done_ms + static_cast<std::int64_t>(std::floor(ran_ms * track.speed));
}

void JobPlay::LetEnd(JobPolicy& policy) {
  while (!ends_.empty() && ends_.begin()->first <= now_ms_) {
    const JobIndex job = ends_.begin()->second;
    Release(job);
    tracks_[job].done_ms = jobs_[job].duration_ms;
    tracks_[job].ended_ms = now_ms_;
    ++ended_;
    policy.Ended(*this, job);
    if (watcher_ != nullptr) watcher_->Ended(*this, job);
  }
}

void JobPlay::LetCome(JobPolicy& policy) {
  while (submitted_ < jobs_.size() && jobs_[submitted_].submit_ms <= now_ms_) {
    const auto job = static_cast<JobIndex>(submitted_++);
    policy.Submitted(*this, job);
    if (watcher_ != nullptr) watcher_->Submitted(*this, job);
  }
}

void JobPlay::Touch(JobIndex job) {
  Track& track = tracks_[job];
  if (track.touched) return;
  track.touched = true;
  track.ran_before = Runs(job);
  touched_.push_back(job);
}

void JobPlay::Take(JobIndex job, std::int64_t gpus, std::int64_t restart_ms) {
  Track& track = tracks_[job];
  MUSTER_CHECK(gpus > 0, "a job runs on GPUs");
  MUSTER_CHECK(gpus <= free_gpus_, "that are free");
  free_gpus_ -= gpus;
  track.gpus = gpus;
  track.speed = 1;
  if (gpus != jobs_[job].gpus) {
    const auto times = static_cast<double>(gpus) / static_cast<double>(jobs_[job].gpus);
    track.speed = 1 / ((1 - kSerialShare) / times + kSerialShare);
  }
  track.since_ms = now_ms_;
  track.resumes_ms = now_ms_ + restart_ms;
  const auto left_ms = static_cast<double>(jobs_[job].duration_ms - track.done_ms);
  track.end_ms = track.resumes_ms + static_cast<std::int64_t>(std::ceil(left_ms / track.speed));
  ends_.emplace(track.end_ms, job);
}

void JobPlay::Release(JobIndex job) {
  Track& track = tracks_[job];
  ends_.erase({track.end_ms, job});
  lost_gpu_ms_ += (std::min(now_ms_, track.resumes_ms) - track.since_ms) * track.gpus;
  track.done_ms = DoneMs(job);
  track.since_ms = -1;
  free_gpus_ += track.gpus;
}

void JobPlay::Start(JobIndex job, std::int64_t gpus) {
  const Track& track = tracks_[job];
  const bool waits = !Runs(job) && track.ended_ms < 0 && job < submitted_;
  MUSTER_CHECK(waits, "only who waits can start");
  Touch(job);
  Take(job, gpus, track.started_ms >= 0 ? rules_.restart_ms : 0);
}

void JobPlay::Stop(JobIndex job) {
  MUSTER_CHECK(Runs(job), "only who runs can be stopped");
  Touch(job);
  Release(job);
}

void JobPlay::Change(JobIndex job, std::int64_t gpus) {
  MUSTER_CHECK(Runs(job), "only who runs can change");
  Release(job);
  Take(job, gpus, rules_.restart_ms);
  ++tracks_[job].changes;
}

Result<void> JobPlay::Tell() {
  for (const JobIndex job : touched_) {
    Track& track = tracks_[job];
    track.touched = false;
    const bool runs = Runs(job);
    if (runs == track.ran_before) continue;
    if (runs && track.started_ms < 0) track.started_ms = now_ms_;
    if (!runs) ++track.preemptions;
    if (watcher_ == nullptr) continue;
    if (runs) {
      watcher_->Started(*this, job);
    } else {
      watcher_->Stopped(*this, job);
    }
  }
  touched_.clear();
  return watcher_ == nullptr ? Result<void>() : watcher_->Decided(*this);
}

}  // namespace muster::sim

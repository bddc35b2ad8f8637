#include "sim/jobs/gavel.h"

#include <algorithm>
#include <tuple>

#include "sim/gavel_shares.h"
#include "sim/jobs/play.h"

namespace muster::sim {

void Gavel::Submitted(const JobPlay& play, JobIndex job) {
  present_.push_back(job);
  asked_gpus_ += play.job(job).gpus;
}

void Gavel::Ended(const JobPlay& play, JobIndex job) {
  present_.erase(std::ranges::lower_bound(present_, job));
  asked_gpus_ -= play.job(job).gpus;
}

void Gavel::Decide(JobPlay& play) {
  if (play.now_ms() % kRoundMs == 0) RunRound(play);
  // While all that are here run, rounds change nothing until somebody comes.
  const bool all_run = play.running() == present_.size();
  next_ms_ = all_run ? kNeverMs : (play.now_ms() / kRoundMs + 1) * kRoundMs;
}

void Gavel::RunRound(JobPlay& play) {
  if (asked_gpus_ <= play.gpus()) {
    for (const JobIndex job : present_) {
      if (!play.Runs(job)) play.Start(job);
    }
    return;
  }
  std::vector<GavelJob> jobs;
  jobs.reserve(present_.size());
  for (const JobIndex job : present_) {
    jobs.push_back({play.job(job).gpus, static_cast<double>(play.RemainingMs(job))});
  }
  const auto shares =
      aim_ == Aim::kMaxMin ? MaxMinShares(jobs, play.gpus()) : MakespanShares(jobs, play.gpus());
  std::vector<GavelRank> behind;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    const auto done = static_cast<double>(play.DoneMs(present_[i]));
    const auto there = static_cast<double>(play.now_ms() - play.job(present_[i]).submit_ms);
    behind.push_back(RankOf(done, there, shares[i], i));
  }
  std::ranges::make_heap(behind, std::ranges::greater{});
  std::int64_t room = play.gpus();
  std::vector<JobIndex> starts;
  while (!behind.empty() && room > 0) {
    std::ranges::pop_heap(behind, std::ranges::greater{});
    const JobIndex job = present_[std::get<2>(behind.back())];
    behind.pop_back();
    if (play.job(job).gpus <= room) {
      room -= play.job(job).gpus;
      if (!play.Runs(job)) starts.push_back(job);
    } else if (play.Runs(job)) {
      play.Stop(job);
    }
  }
  for (const auto& waits : behind) {
    const JobIndex job = present_[std::get<2>(waits)];
    if (play.Runs(job)) play.Stop(job);
  }
  for (const JobIndex job : starts) play.Start(job);
}

}  // namespace muster::sim

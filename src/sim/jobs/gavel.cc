#include "sim/jobs/gavel.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

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
  next_ms_ = present_.empty() ? kNeverMs : (play.now_ms() / kRoundMs + 1) * kRoundMs;
}

// The level is raised until the cluster is full; those that ask for no more than it run always.
void Gavel::ShareMaxMin(const JobPlay& play) {
  std::map<std::int64_t, std::int64_t> sizes;
  for (const JobIndex job : present_) ++sizes[play.job(job).gpus];
  auto jobs = static_cast<std::int64_t>(present_.size());
  std::int64_t room = play.gpus();
  double level = std::numeric_limits<double>::infinity();
  for (const auto& [gpus, count] : sizes) {
    if (jobs * gpus > room) {
      level = static_cast<double>(room) / static_cast<double>(jobs);
      break;
    }
    room -= count * gpus;
    jobs -= count;
  }
  for (std::size_t i = 0; i < present_.size(); ++i) {
    shares_[i] = std::min(1.0, level / static_cast<double>(play.job(present_[i]).gpus));
  }
}

void Gavel::ShareMakespan(const JobPlay& play) {
  double longest = 0, work = 0;
  for (const JobIndex job : present_) {
    const auto remaining = static_cast<double>(play.RemainingMs(job));
    longest = std::max(longest, remaining);
    work += remaining * static_cast<double>(play.job(job).gpus);
  }
  const double end = std::max(longest, work / static_cast<double>(play.gpus()));
  for (std::size_t i = 0; i < present_.size(); ++i) {
    shares_[i] = static_cast<double>(play.RemainingMs(present_[i])) / end;
  }
}

void Gavel::RunRound(JobPlay& play) {
  if (asked_gpus_ <= play.gpus()) {
    for (const JobIndex job : present_) {
      if (!play.Runs(job)) play.Start(job);
    }
    return;
  }
  shares_.resize(present_.size());
  if (aim_ == Aim::kMaxMin) {
    ShareMaxMin(play);
  } else {
    ShareMakespan(play);
  }
  // Furthest behind first; of those that are equally far the larger share, then who came first.
  std::vector<std::tuple<double, double, std::size_t>> behind;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    const auto done = static_cast<double>(play.DoneMs(present_[i]));
    const auto there = static_cast<double>(play.now_ms() - play.job(present_[i]).submit_ms);
    behind.emplace_back(done / (shares_[i] * std::max(1.0, there)), -shares_[i], i);
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

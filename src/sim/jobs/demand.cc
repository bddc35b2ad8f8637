#include "sim/jobs/demand.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace muster::sim {

std::int64_t SpanMs(const std::vector<TraceJob>& jobs) {
  std::int64_t last_submit_ms = 0, last_end_ms = 0;
  for (const auto& job : jobs) {
    last_submit_ms = std::max(last_submit_ms, job.submit_ms);
    last_end_ms = std::max(last_end_ms, job.submit_ms + job.duration_ms);
  }
  return last_submit_ms > 0 ? last_submit_ms : last_end_ms;
}

Demand::Demand(const std::vector<TraceJob>& jobs, const std::string* queue)
    : span_ms_(SpanMs(jobs)) {
  std::map<std::int64_t, std::int64_t> steps = {{0, 0}};  // by time: how the demand changes then
  for (const auto& job : jobs) {
    if (queue != nullptr && job.queue != *queue) continue;
    steps[job.submit_ms] += job.gpus;
    steps[job.submit_ms + job.duration_ms] -= job.gpus;
    largest_ = std::max(largest_, job.gpus);
    gpu_ms_ += static_cast<double>(job.gpus) * static_cast<double>(job.duration_ms);
    ++jobs_;
  }
  std::map<std::int64_t, std::int64_t> held_ms;  // by demand: for how long
  std::int64_t demand = 0;
  for (auto step = steps.begin(); step != steps.end() && step->first < span_ms_; ++step) {
    demand += step->second;
    const auto next = std::next(step);
    const auto until_ms = next == steps.end() ? span_ms_ : std::min(span_ms_, next->first);
    held_ms[demand] += until_ms - step->first;
  }
  std::int64_t sum_ms = 0;
  within_ms_.reserve(held_ms.size());
  for (const auto& [gpus, ms] : held_ms) within_ms_.emplace_back(gpus, sum_ms += ms);
}

std::int64_t Demand::At(double share) const {
  const auto wanted_ms = static_cast<std::int64_t>(share * static_cast<double>(span_ms_));
  if (wanted_ms <= 0) return 0;
  const auto found = std::ranges::lower_bound(within_ms_, wanted_ms, {},
                                              &std::pair<std::int64_t, std::int64_t>::second);
  if (found != within_ms_.end()) return found->first;
  return within_ms_.empty() ? 0 : within_ms_.back().first;
}

}  // namespace muster::sim

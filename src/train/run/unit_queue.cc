#include "train/run/unit_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::train {

UnitQueue::UnitQueue(std::deque<std::int64_t> units, const std::vector<int>& workers,
                     std::optional<std::int64_t> staleness)
    : units_(std::move(units)), staleness_(staleness) {
  for (const int worker : workers) finished_[worker] = -1;
}

bool UnitQueue::MayTake(std::int64_t finished) const {
  return !staleness_ || std::ranges::all_of(finished_, [&](const auto& other) {
    return finished - std::max<std::int64_t>(other.second, 0) <= *staleness_;
  });
}

std::optional<std::int64_t> UnitQueue::Take(int worker, const std::function<bool()>& broken_off) {
  std::unique_lock lock(mutex_);
  const auto finished = ++finished_[worker];
  news_.notify_all();
  while (!units_.empty() && !broken_off() && !MayTake(finished)) {
    news_.wait_for(lock, std::chrono::milliseconds(10));  // nobody tells of an end
  }
  if (units_.empty() || broken_off()) {
    finished_.erase(worker);
    news_.notify_all();
    return std::nullopt;
  }
  const auto unit = units_.front();
  units_.pop_front();
  return unit;
}

}  // namespace muster::train

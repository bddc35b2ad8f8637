// UnitQueue: which worker computes which unit of an asynchronous round.
//
// A worker takes the next unit when all that it took before is applied everywhere. With a bound S a
// worker that has finished n units may take another only when every other that still works has
// finished at least n - S; so the fastest has never begun more than S + 1 units that the slowest
// has not finished. Counted in each view from the beginning of its round.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace muster::train {

class UnitQueue {
 public:
  UnitQueue(std::deque<std::int64_t> units, const std::vector<int>& workers,
            std::optional<std::int64_t> staleness);

  // Waits while this worker is too far ahead. None: there are no more, or it was broken off.
  std::optional<std::int64_t> Take(int worker, const std::function<bool()>& broken_off);

 private:
  bool MayTake(std::int64_t finished) const;

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::int64_t> units_;
  std::map<int, std::int64_t> finished_;  // by worker that still works; -1: it has taken none yet
  std::optional<std::int64_t> staleness_;
};

}  // namespace muster::train

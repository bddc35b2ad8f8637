// Clock: the only door to time.
//
// Everything that needs the time is handed a Clock or a number of milliseconds; the engine gets
// numbers only. SystemClock is wired in by the programs, ManualClock by tests and the simulator.
#pragma once

#include <cstdint>

namespace muster {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t WallMs() = 0;       // since the Unix epoch
  virtual std::int64_t MonotonicNs() = 0;  // for measuring; never goes back
};

class SystemClock final : public Clock {
 public:
  std::int64_t WallMs() override;
  std::int64_t MonotonicNs() override;
};

class ManualClock final : public Clock {
 public:
  std::int64_t WallMs() override { return now_ms_; }
  std::int64_t MonotonicNs() override { return now_ms_ * 1'000'000; }
  void Advance(std::int64_t ms) { now_ms_ += ms; }

 private:
  std::int64_t now_ms_ = 0;
};

}  // namespace muster

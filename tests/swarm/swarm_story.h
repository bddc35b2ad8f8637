// Story: what happened in one seed, what went wrong first, and the crash that may come any moment.
//
// Everything of the swarm tells its steps here; of a seed that fails the last ones are printed. A
// crash of the daemon is an exception thrown out of a call to the store or the pool, so it hits any
// point between two of them. Only the driver catches it, and the controller is gone by then.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/clock.h"
#include "base/random.h"

namespace muster::swarm {

struct Crash {};

// Wall and monotonic time that part ways when somebody sets the clock.
class SwarmClock final : public Clock {
 public:
  std::int64_t WallMs() override { return wall_ms_; }
  std::int64_t MonotonicNs() override { return mono_ms_ * 1'000'000; }
  std::int64_t mono_ms() const { return mono_ms_; }
  void Advance(std::int64_t ms) {
    wall_ms_ += ms;
    mono_ms_ += ms;
  }
  void SetWall(std::int64_t by_ms) { wall_ms_ += by_ms; }

 private:
  std::int64_t wall_ms_ = 1'700'000'000'000;
  std::int64_t mono_ms_ = 5'000;
};

struct Story {
  SwarmClock clock;
  std::deque<std::string> lines;
  std::string wrong;      // the first thing that was
  bool calm = false;      // no more faults
  std::size_t kept = 40;  // lines; more also tell what the journal says
  int crash_in = 0;       // calls until the crash; 0: none is near

  void Tell(std::string line) {
    lines.push_back(std::to_string(clock.mono_ms()) + " " + std::move(line));
    if (lines.size() > kept) lines.pop_front();
  }
  void Wrong(const std::string& what) {
    if (!wrong.empty()) return;
    wrong = what;
    Tell("WRONG: " + what);
  }
  void Tick(const char* where) {
    if (crash_in == 0 || --crash_in > 0) return;
    Tell(std::string("crash at ") + where);
    throw Crash{};
  }
};

}  // namespace muster::swarm

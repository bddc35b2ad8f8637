// Activity: since when nobody has used a worker.
//
// It is fed with what the worker's processes have used so far and with the time of the last key. A
// sample in which they used more of a processor, or of a GPU, than the threshold counts as use up
// to its end, so that a worker seems idle late rather than early. Times are of one clock that never
// goes back.
#pragma once

#include <cstdint>
#include <optional>

namespace muster::pools {

// Above these a worker is in use. A shell or a notebook server that waits needs about a tenth.
struct IdleThresholds {
  std::int64_t cpu_milli = 20;  // thousandths of a core, on average between two looks
  int gpu_percent = 1;          // of the time, some kernel of it was resident
};

class Activity {
 public:
  explicit Activity(std::int64_t now_ms) : used_ms_(now_ms), looked_ms_(now_ms) {}

  // `cpu_ms` since it began; `gpu_percent` since the last look, none: it has none or is not known.
  void Look(std::int64_t now_ms, std::int64_t cpu_ms, std::optional<int> gpu_percent,
            const IdleThresholds& thresholds);
  void Typed(std::int64_t at_ms);

  std::int64_t looked_ms() const { return looked_ms_; }
  std::int64_t IdleMs(std::int64_t now_ms) const { return now_ms - used_ms_; }

 private:
  std::int64_t used_ms_;
  std::int64_t looked_ms_;
  std::int64_t cpu_ms_ = -1;  // -1: never looked
};

}  // namespace muster::pools

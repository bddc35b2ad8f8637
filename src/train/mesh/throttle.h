// Throttle: a token bucket over all connections of a mesh: so many bytes a second, no more.
//
// It stands for a slower network than there is, to measure and to leave room for others. Bursts are
// two milliseconds of the rate, so that what goes through is smooth at the scale of a bucket of
// gradients. Without a rate it costs one comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace muster::train {

class Throttle {
 public:
  explicit Throttle(std::int64_t bytes_per_s) : rate_(bytes_per_s) {}
  // How many of the bytes may go now.
  std::size_t Take(std::size_t bytes);
  // Those of them that did not go after all.
  void GiveBack(std::size_t bytes);
  std::int64_t WaitNs() const { return 1'000'000; }  // then there are tokens again

 private:
  const std::int64_t rate_;
  std::mutex mutex_;
  std::int64_t filled_ns_ = 0;
  double tokens_ = 0;
};

}  // namespace muster::train

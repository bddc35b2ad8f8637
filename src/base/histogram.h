// Histogram: how long things took, in few buckets that never change, as Prometheus wants them.
//
// The bounds reach from half a millisecond to ten seconds, which is all there is between a look-up
// in memory and a disk that hangs. Counting is one comparison a bucket and allocates nothing. Not
// thread-safe: whoever owns it counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace muster {

class Histogram {
 public:
  static constexpr std::array<double, 9> kBounds = {0.0005, 0.002, 0.01, 0.05, 0.2,
                                                    0.5,    1.0,   2.5,  10.0};  // seconds

  void Add(std::int64_t took_ns) {
    const double seconds = static_cast<double>(took_ns) / 1e9;
    std::size_t i = 0;
    while (i < kBounds.size() && seconds > kBounds[i]) ++i;
    ++counts_[i];
    sum_ns_ += took_ns;
  }

  // Up to and including bound `i`; `kBounds.size()`: all of them.
  std::uint64_t UpTo(std::size_t i) const {
    std::uint64_t total = 0;
    for (std::size_t b = 0; b <= i; ++b) total += counts_[b];
    return total;
  }
  std::uint64_t count() const { return UpTo(kBounds.size()); }
  double sum_s() const { return static_cast<double>(sum_ns_) / 1e9; }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  std::int64_t sum_ns_ = 0;
};

}  // namespace muster

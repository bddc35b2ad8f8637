// Random: seeded numbers that are the same on every compiler and machine.
//
// The standard engines are portable but the standard distributions are not, so both live here.
// SplitMix64 is enough for workloads and tests; nothing secret is made from it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  // Uniform in [low, high], but for the bias of the remainder, which is nothing for small ranges.
  // Computed without sign: the whole range of int64 has more values than int64 can count.
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    const auto first = static_cast<std::uint64_t>(low);
    const std::uint64_t range = static_cast<std::uint64_t>(high) - first + 1;
    return static_cast<std::int64_t>(first + (range == 0 ? Next() : Next() % range));
  }

  // Of one of `count` things.
  std::size_t Index(std::size_t count) {
    return static_cast<std::size_t>(Between(0, static_cast<std::int64_t>(count) - 1));
  }

  bool Chance(int percent) { return Between(1, 100) <= percent; }

 private:
  std::uint64_t state_;
};

}  // namespace muster

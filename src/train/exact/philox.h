// Philox: random numbers that are a function of a key and a counter (Philox 4x32-10, SC'11).
//
// There is no state to carry along, so whoever computes a shard of a step draws the numbers that
// any other would have drawn. The key is the seed; the counter says what the numbers are for.
#pragma once

#include <array>
#include <cstdint>

namespace muster::train {

// Four numbers for each counter.
constexpr std::array<std::uint32_t, 4> Philox(std::uint64_t key,
                                              std::array<std::uint32_t, 4> counter) {
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ low, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ high, static_cast<std::uint32_t>(a)};
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return counter;
}

// Uniform in [0, 1), from the upper 24 bits: every value is a float.
constexpr float UnitFloat(std::uint32_t number) {
  return static_cast<float>(number >> 8U) * 0x1p-24F;
}

}  // namespace muster::train

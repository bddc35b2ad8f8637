#include "train/data/order.h"

#include <bit>

#include "base/check.h"
#include "train/exact/philox.h"
#include "train/exact/streams.h"

namespace muster::train {

namespace {

constexpr std::uint32_t kRounds = 12;

std::uint64_t Mask(int bits) { return (std::uint64_t{1} << static_cast<unsigned>(bits)) - 1; }

}  // namespace

std::uint64_t SampleAt(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                       std::uint64_t size) {
  MUSTER_CHECK(position < size, "a position is in the epoch");
  MUSTER_CHECK(size <= (std::uint64_t{1} << 60U), "there are not so many samples");
  if (size == 1) return 0;
  // Both halves have at most 30 bits. The left one may be a bit shorter.
  const auto bits = static_cast<int>(std::bit_width(size - 1));
  const int right_bits = (bits + 1) / 2;
  const int left_bits = bits - right_bits;
  const auto mix = [&](std::uint64_t half, std::uint32_t round) {
    const auto high = static_cast<std::uint32_t>(epoch >> 32U);
    return std::uint64_t{Philox(
        seed, {static_cast<std::uint32_t>(half), round + 16 * high,
               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(Stream::kOrder)})[0]};
  };
  std::uint64_t at = position;
  do {
    std::uint64_t left = at >> static_cast<unsigned>(right_bits);
    std::uint64_t right = at & Mask(right_bits);
    for (std::uint32_t round = 0; round < kRounds; round += 2) {
      left ^= mix(right, round) & Mask(left_bits);
      right ^= mix(left, round + 1) & Mask(right_bits);
    }
    at = left << static_cast<unsigned>(right_bits) | right;
  } while (at >= size);
  return at;
}

std::uint64_t SampleDrawn(std::uint64_t seed, std::uint64_t drawn, std::uint64_t size) {
  return SampleAt(seed, drawn / size, drawn % size, size);
}

}  // namespace muster::train

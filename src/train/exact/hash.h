// HashOf: 64 bits for a list of floats or bytes, equal for equal bits.
//
// FNV-1a by words: for comparing results of runs, not against anybody who wants to deceive. One
// multiplication for each number.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace muster::train {

inline constexpr std::uint64_t kFirstHash = 0xcbf29ce484222325ULL;
inline constexpr std::uint64_t kHashFactor = 0x100000001b3ULL;

// `hash`: of what comes before, to go on with.
inline std::uint64_t HashOf(std::span<const float> values, std::uint64_t hash = kFirstHash) {
  for (const float value : values)
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * kHashFactor;
  return hash;
}
inline std::uint64_t HashOf(std::span<const unsigned char> bytes, std::uint64_t hash = kFirstHash) {
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * kHashFactor;
  return hash;
}

}  // namespace muster::train

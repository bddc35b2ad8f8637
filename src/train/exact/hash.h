// HashOf: 64 bits for a list of floats, equal for equal bits.
//
// FNV-1a by words: for comparing results of runs, not against anybody who wants to deceive. One
// multiplication for each number.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace muster::train {

inline std::uint64_t HashOf(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const float value : values) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace muster::train

// Bits: an ordered set of small integers with find-next in constant time.
//
// A tree of 64-way words: three levels hold 262,144 members, so that finding the first node of a
// bucket does not depend on the size of the cluster. Insert and erase touch one word per level.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/ids.h"

namespace muster::engine {

class Bits {
 public:
  void Resize(std::uint32_t size) {
    std::uint32_t words = size;
    for (auto& level : levels_) {
      words = (words + 63) / 64;
      if (level.size() < words) level.resize(words, 0);
    }
  }

  void Insert(std::uint32_t i) {
    for (auto& level : levels_) {
      std::uint64_t& word = level[i >> 6];
      const bool was_empty = word == 0;
      word |= 1ULL << (i & 63);
      if (!was_empty) return;
      i >>= 6;
    }
  }

  void Erase(std::uint32_t i) {
    for (auto& level : levels_) {
      std::uint64_t& word = level[i >> 6];
      word &= ~(1ULL << (i & 63));
      if (word != 0) return;
      i >>= 6;
    }
  }

  bool Contains(std::uint32_t i) const {
    return (i >> 6) < levels_[0].size() && (levels_[0][i >> 6] >> (i & 63) & 1) != 0;
  }

  // The smallest member >= i, or kNone.
  std::uint32_t Next(std::uint32_t i) const {
    std::size_t depth = 0;
    while (depth < kLevels) {
      const auto& level = levels_[depth];
      if ((i >> 6) >= level.size()) return kNone;
      const std::uint64_t rest = level[i >> 6] >> (i & 63);
      if (rest != 0) {
        i += static_cast<std::uint32_t>(std::countr_zero(rest));
        while (depth > 0) {
          --depth;
          i = (i << 6) + static_cast<std::uint32_t>(std::countr_zero(levels_[depth][i]));
        }
        return i;
      }
      i = (i >> 6) + 1;
      ++depth;
    }
    return kNone;
  }

 private:
  static constexpr std::size_t kLevels = 4;
  std::array<std::vector<std::uint64_t>, kLevels> levels_;
};

}  // namespace muster::engine

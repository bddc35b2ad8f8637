// Group: some members of a gang that act together in one collective call, in an order.
//
// Every member makes the same group with the same tags. The algorithms below work on any group, so
// that a large one can be made of smaller ones. Values lie in place; parts are cut at whole cache
// lines, the same on all members.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "train/mesh/fabric.h"

namespace muster::train {

constexpr std::size_t kLineFloats = 16;

struct Group {
  Fabric* fabric = nullptr;
  std::vector<int> ranks;  // of the fabric
  std::size_t me = 0;      // place of this member
  Tag base = 0;            // tags from here on are free for this call

  std::size_t size() const { return ranks.size(); }
  int at(std::size_t place) const { return ranks[place]; }
};

struct Stretch {
  std::size_t from = 0, to = 0;
  std::size_t size() const { return to - from; }
};

// The one at `place` of `count` stretches of `whole`, each of whole lines, about equal.
inline Stretch PartOf(Stretch whole, std::size_t place, std::size_t count) {
  const std::size_t lines = (whole.size() + kLineFloats - 1) / kLineFloats;
  const auto cut = [&](std::size_t i) {
    const std::size_t line = lines / count * i + std::min(i, lines % count);
    return whole.from + std::min(whole.size(), line * kLineFloats);
  };
  return {cut(place), cut(place + 1)};
}

inline std::span<float> Cut(std::span<float> values, Stretch part) {
  return values.subspan(part.from, part.size());
}

inline const float* Floats(std::span<const std::byte> bytes) {
  return reinterpret_cast<const float*>(bytes.data());
}

}  // namespace muster::train

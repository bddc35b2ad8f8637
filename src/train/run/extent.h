// Extents: runs of the flat list of parameters, and how it is cut.
//
// Buckets are whole layers, from the last one to the first, because gradients come in that order; a
// bucket is what is exchanged at once. Each bucket is cut into as many parts as there are workers,
// on cache lines; a worker sums and updates its part of each. Cuts never change a bit of a result:
// all arithmetic on parameters is by element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace muster::train {

struct Extent {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t size() const { return last - first; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

inline constexpr std::size_t kLineFloats = 16;

// From the last layer to the first: layers together while they have at most so many floats.
inline std::vector<Extent> BucketsOf(std::span<const std::size_t> layer_floats,
                                     std::size_t most_floats) {
  std::size_t last = 0;
  for (const std::size_t floats : layer_floats) last += floats;
  std::vector<Extent> out;
  Extent bucket{last, last};
  for (auto layer = layer_floats.rbegin(); layer != layer_floats.rend(); ++layer) {
    if (bucket.size() > 0 && bucket.size() + *layer > most_floats) {
      out.push_back(bucket);
      bucket.last = bucket.first;
    }
    bucket.first -= *layer;
  }
  if (bucket.size() > 0) out.push_back(bucket);
  return out;
}

inline Extent PartOf(Extent bucket, int parts, int part) {
  const std::size_t lines = (bucket.size() + kLineFloats - 1) / kLineFloats;
  const auto at = [&](int index) {
    const auto line = lines * static_cast<std::size_t>(index) / static_cast<std::size_t>(parts);
    return bucket.first + std::min(bucket.size(), line * kLineFloats);
  };
  return {at(part), at(part + 1)};
}

}  // namespace muster::train

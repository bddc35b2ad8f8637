// Start: how parameters begin, as a function of the seed and of which parameter it is.
//
// Numbers are uniform: they need no function of the system's library, so they are the same bits on
// every machine. Whoever holds a slice can start it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::train {

// Which slice of which layer, in a run with this seed.
struct SliceKey {
  std::uint64_t seed = 0;
  int layer = 0;
  int slice = 0;
};

// Uniform in [-limit, limit): `part` begins `offset` floats after the first of the slice.
void StartUniform(const SliceKey& key, std::size_t offset, float limit, std::span<float> part);

// The limit that keeps the variance of what goes through a matrix: `gain` is 2 before a relu.
float LimitFor(std::size_t inputs, float gain);

}  // namespace muster::train

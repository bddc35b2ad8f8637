// What tests of the built-in compute share: made-up matrices and the fastest kernels there are.
//
// Numbers come from Philox with a seed of the test, so every run of a test sees the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "train/compute/kernels.h"
#include "train/compute/matrix.h"
#include "train/exact/philox.h"

namespace muster::train {

inline const Kernels& FastKernels() {
  const auto kernels = KernelsFor("auto");
  MUSTER_CHECK(kernels.has_value(), "there are kernels for every CPU");
  return **kernels;
}

// Uniform in [-1, 1).
inline void FillRandom(std::uint64_t seed, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2.0F * UnitFloat(Philox(seed, {static_cast<std::uint32_t>(i), 0, 0, 0})[0]) - 1.0F;
  }
}

inline Matrix RandomMatrix(std::uint64_t seed, std::size_t rows, std::size_t cols) {
  Matrix out(rows, cols);
  FillRandom(seed, out.values());
  return out;
}

inline std::vector<float> Floats(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace muster::train

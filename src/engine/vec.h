// Vec: an amount of every resource that queues are held to.
//
// Dimension 0 is GPUs (thousandths), 1 cores (thousandths), 2 memory (bytes); behind them come the
// GPU types that some quota, limit or weight names, and other countables. A fixed array, so that
// adding costs no allocation; loops run over the dimensions in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/resources.h"

namespace muster::engine {

inline constexpr std::size_t kMaxDims = 16;
inline constexpr std::size_t kGpuDim = 0;
inline constexpr std::size_t kCpuDim = 1;
inline constexpr std::size_t kMemoryDim = 2;
inline constexpr std::size_t kFirstNamedDim = 3;

using model::kUnlimited;

struct Vec {
  std::array<std::int64_t, kMaxDims> at{};

  std::int64_t& operator[](std::size_t dim) { return at[dim]; }
  std::int64_t operator[](std::size_t dim) const { return at[dim]; }
  friend bool operator==(const Vec&, const Vec&) = default;

  void Add(const Vec& other, std::size_t dims) {
    for (std::size_t d = 0; d < dims; ++d) at[d] += other.at[d];
  }
  void Subtract(const Vec& other, std::size_t dims) {
    for (std::size_t d = 0; d < dims; ++d) at[d] -= other.at[d];
  }
};

// a <= b in every dimension in which `adds` adds something, a being `held` plus `adds`.
// `kept`: of what is not held, that nobody may take.
inline bool StaysWithin(const Vec& held, const Vec& kept, const Vec& adds, const Vec& bound,
                        std::size_t dims) {
  for (std::size_t d = 0; d < dims; ++d) {
    if (adds[d] > 0 && bound[d] != kUnlimited && held[d] + kept[d] + adds[d] > bound[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace muster::engine

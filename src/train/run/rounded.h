// Rounded: a gradient as 16 bits a number, for the way to those who sum it up.
//
// What rounding takes is added to the next gradient of the same place (error feedback), so nothing
// is lost for long; what does not fit into 16 bits waits there too. It lies in memory that peers
// read, beside the gradient. A change of the gang begins with nothing kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/run/arena.h"
#include "train/run/extent.h"

namespace muster::train {

class Rounded {
 public:
  static std::size_t BytesFor(std::size_t floats) { return Arena::BytesFor((floats + 1) / 2); }

  Rounded(std::size_t floats, Arena& arena);

  // The values at this place of the gradient, rounded; they change by what was kept.
  std::span<const std::byte> Round(Extent at, std::span<float> values);
  static void Widen(std::span<const std::byte> rounded, std::span<float> into);

 private:
  Arena::Block block_;
  std::span<std::uint16_t> halves_;
  std::vector<float> kept_;
};

}  // namespace muster::train

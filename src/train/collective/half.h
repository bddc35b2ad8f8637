// Half: float32 as 16 bits (IEEE 754 binary16) for the wire, and back.
//
// Rounds to nearest, ties to even; what is too large becomes infinite. The instructions of the
// processor are used where it has them, and give the same bits.
#pragma once

#include <cstdint>
#include <span>

namespace muster::train {

void ToHalf(std::span<const float> from, std::uint16_t* into);
void FromHalf(std::span<const std::uint16_t> from, float* into);

// One at a time, without special instructions.
std::uint16_t HalfOf(float value);
float FloatOf(std::uint16_t half);

}  // namespace muster::train

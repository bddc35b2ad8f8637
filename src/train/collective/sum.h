// Sums of float32 vectors, element by element.
//
// Each element is one chain of additions in the order of the summands, so the bits do not depend on
// how many elements an instruction takes at a time: the widest that the processor has are used.
#pragma once

#include <cstddef>
#include <span>

namespace muster::train {

// into[i] += from[i]
void AddTo(std::span<float> into, const float* from);
// into[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ...; `into` may be one of the parts.
void SumOf(std::span<float> into, std::span<const float* const> parts);
// into[i] = from[i], the last ones first; past the caches when there is much of it.
void CopyFromEnd(std::span<float> into, const float* from);

}  // namespace muster::train

// Wide: 128-bit integers, for products of two 64-bit amounts.
//
// Ratios are compared by cross-multiplying, never by dividing, so that a decision does not depend
// on rounding. gcc and clang both have the type; this is the one place that knows it is an
// extension.
#pragma once

namespace muster {

__extension__ using Wide = __int128;

}  // namespace muster

// What random numbers are for: the last word of a Philox counter.
//
// So no two uses share a number, though all have the seed of the run as their key.
#pragma once

#include <cstdint>

namespace muster::train {

enum class Stream : std::uint32_t {
  kParameters = 1,  // counter: index, layer, slice
  kOrder = 2,       // of samples; counter: half of the index, round, epoch
  kSynthetic = 3,   // made-up data; counter: index, index, which
};

}  // namespace muster::train

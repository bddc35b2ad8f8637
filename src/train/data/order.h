// Order: which sample comes when, without a list of them.
//
// Each epoch is a permutation of the samples keyed by the seed and the epoch: a Feistel network
// over the next power of two, applied again while it leaves the samples. Positions count through
// all epochs, so a batch may begin in one epoch and end in the next: nothing is dropped, and every
// epoch has every sample exactly once. Costs less than a microsecond for a sample.
#pragma once

#include <cstdint>

namespace muster::train {

// The sample at a position of an epoch: a bijection of [0, size).
std::uint64_t SampleAt(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                       std::uint64_t size);

// The sample that a run takes as number `drawn`, from 0 on.
std::uint64_t SampleDrawn(std::uint64_t seed, std::uint64_t drawn, std::uint64_t size);

}  // namespace muster::train

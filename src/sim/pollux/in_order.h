// RunInOrder: jobs with the GPUs that they asked for, in the order of a policy.
//
// Who fits in what is left runs, who does not waits; `strict`: nobody passes somebody who waits.
// Who ran keeps its place, the others take theirs in that order (FreeGpus).
#pragma once

#include <cstddef>
#include <span>

#include "sim/pollux/policy.h"

namespace muster::sim {

// `order`: indices of jobs of the scene.
Allocation RunInOrder(const Scene& scene, std::span<const std::size_t> order, bool strict = false);

}  // namespace muster::sim

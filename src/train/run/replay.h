// Replay: the parameters that recorded asynchronous updates lead to, computed in one process.
//
// Each gradient is computed from the versions of the parts that it was computed from in the run,
// and applied in the order of the log, so the result has the bits that the run had. Holds those
// versions only that a gradient still needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/run/extent.h"
#include "train/run/update_log.h"
#include "train/run/workload.h"

namespace muster::train {

// `buckets` are those of the run. An error: the updates cannot have happened like this.
Result<std::vector<float>> Replay(Workload& workload, std::span<const Extent> buckets,
                                  std::uint64_t seed, const std::vector<UpdateRound>& rounds);

}  // namespace muster::train

// SetUpWorker: what one worker is started with, so that unmodified programs run distributed.
//
// Decides the environment, the command and the files of one member from the gang and the job's
// framework (docs/frameworks.md has the tables). Pure: writes nothing and looks nothing up, so that
// the same gang gives the same start on every pool. The job's own `env` wins over all but MUSTER_*.
// Costs time linear in the gang per worker.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "pools/frameworks/gang.h"

namespace muster::pools {

Result<WorkerSetup> SetUpWorker(const GangView& gang, int rank);

// "0,3" for bits 0 and 3: the value of CUDA_VISIBLE_DEVICES. Empty, which hides all, for none.
std::string VisibleDevices(std::uint64_t mask);

}  // namespace muster::pools

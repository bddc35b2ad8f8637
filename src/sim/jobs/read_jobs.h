// ReadJobs: a trace of rigid jobs, in whichever of the public formats it comes.
//
// The format is told by the names of the columns, or where a file has none by their number; the
// file may be gzipped. Jobs come back by submission, and the first one comes at 0.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/jobs/trace_job.h"

namespace muster::sim {

Result<JobTrace> ReadJobs(const std::string& path);

}  // namespace muster::sim

// ReadJobs: a trace of rigid jobs, in whichever of the public formats it comes.
//
// The format is told by the names of the columns, or where a file has none by their number; the
// file may be gzipped. A past that `muster snapshot past` saved is a trace, too. Jobs come back by
// submission, and the first one comes at 0.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/jobs/trace_job.h"
#include "sim/trace/files.h"

namespace muster::sim {

Result<JobTrace> ReadJobs(const std::string& path, const TraceFiles& files = {});
// A text with a head line, from wherever it came; `name` is what mistakes are told with. No file is
// opened, so the formats that need one beside them are refused.
Result<JobTrace> ReadJobsText(const std::string& name, std::string_view text);

}  // namespace muster::sim

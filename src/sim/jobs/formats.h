// The formats of public traces, one small file each.
//
// Each is given the table that its file is, recognised by ReadJobs, and returns its jobs in the
// order of the table. Where a format leaves room for doubt, the file of that format says how it was
// settled.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/jobs/trace_job.h"
#include "sim/trace/table.h"

namespace muster::sim {

// Our own, which the generator writes: what every trace can be turned into.
Result<JobTrace> ReadPlain(const Table& table);
Result<JobTrace> ReadChronus(const Table& table);
Result<JobTrace> ReadElasticFlow(const Table& table);
Result<JobTrace> ReadMuri(const Table& table);
Result<JobTrace> ReadPhilly(const Table& table);
Result<JobTrace> ReadTiresias(const Table& table);

// A past of ours is no table; of whatever version.
bool IsPast(std::string_view bytes);
Result<JobTrace> ReadPast(const std::string& path, std::string_view bytes);

// Those without a head line, told by the number of their columns.
std::vector<std::string> GavelHead(std::size_t columns);  // empty: not Gavel's
Result<JobTrace> ReadGavel(const Table& table, const std::string& path, const TraceFiles& files);
std::vector<std::string> ShockwaveHead(std::size_t columns);
Result<JobTrace> ReadShockwave(const Table& table);

}  // namespace muster::sim

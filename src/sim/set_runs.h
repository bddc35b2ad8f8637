// SetRuns: several policies on one trace of a set (jobs, pollux, openb), with several seeds where
// there is randomness.
//
// What came out of each run as a document, the one that `muster sim run -o json` shows, and the
// page of `muster sim report`. It can be watched and ended between two steps of a run. The
// documents follow from the files, the policies and the seeds, but for the times that the runs
// took.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/policy.h"
#include "model/document.h"
#include "sim/jobs/run_jobs.h"
#include "sim/openb/experiment.h"
#include "sim/pollux/arena.h"
#include "sim/report/report.h"
#include "sim/trace/files.h"

namespace muster::sim {

enum class LabSet : std::uint8_t { kJobs, kPollux, kOpenb };

struct SetWish {
  LabSet set = LabSet::kPollux;
  std::vector<std::string> policies = {};
  std::int64_t seed = 0;
  std::int64_t seeds = 1;                          // from `seed` on; no policy of jobs draws any
  std::vector<TraceJob> jobs = {};                 // of jobs; `workload` is what they are called
  std::string profiles = {}, workload = {};        // of pollux
  std::int64_t node_count = 0, gpus_per_node = 0;  // of jobs and pollux; 0: as the set says
  std::string nodes = {}, pods = {};               // of openb
  std::string policy_file = {};                    // how `muster` decides; empty: as by default
};

struct SetRuns {
  std::vector<model::DocNode> runs;  // by policy, then by seed
  std::string page;
};

model::DocNode JobsNode(const std::string& policy, std::int64_t seed, const std::string& workload,
                        const JobsResult& run);
model::DocNode ArenaNode(const std::string& policy, std::int64_t seed, const std::string& workload,
                         const ArenaResult& run);
model::DocNode OpenbNode(const std::string& policy, std::int64_t seed, const OpenbResult& run);

// Their names, of which the error names those that there are, and the policy file: what it says.
Result<engine::Policy> CheckPolicies(const SetWish& wish);

// Where `muster` did not decide as by default a page says so.
void PutSettings(report::Origin& origin, const engine::Policy& muster);

// `pass` is told the share that is done; its error ends it.
Result<SetRuns> PlaySet(const SetWish& wish, const TraceFiles& files, const std::string& version,
                        Clock& clock, const std::function<Result<void>(double)>& pass);

}  // namespace muster::sim

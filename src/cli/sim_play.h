// SimPlay: what `muster sim run`, `compare` and `report` are asked for, and one run of it.
//
// Three sets: `pollux` plays a workload of elastic training jobs in time, `openb` places pods until
// the cluster is full, `jobs` plays traces of rigid jobs in time. A run follows from the files, the
// policy and the seed alone, but for the times that it took itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/progress.h"
#include "engine/policy.h"
#include "sim/jobs/run_jobs.h"
#include "sim/openb/experiment.h"
#include "sim/pollux/arena.h"

namespace muster::cli {

struct SimWords {
  std::string set;       // "": as the files say
  std::string policy;    // of run
  std::string policies;  // of compare and report, with commas between them
  std::int64_t seed = 0;
  std::int64_t seeds = 1;  // of compare and report: from `seed` on
  std::string profiles, workload;
  std::int64_t node_count = 0, gpus_per_node = 0;  // of jobs and pollux; 0: as the set says
  bool estimates = false;                          // of jobs
  std::string nodes, pods;
  std::string policy_file;
  engine::Policy muster = {};  // what that file says
  std::string to;              // of report: a folder
};

// Fills in what was left out and reads the policy file. A flag that the set needs and nobody gave,
// one that it has no use for, or a policy that there is not, is a mistake.
Result<void> Complete(SimWords& words);

std::vector<std::string> PoliciesOf(const SimWords& words);
std::int64_t RunsOf(const SimWords& words);

Result<sim::ArenaResult> PlayArena(const SimWords& words, const std::string& policy,
                                   std::int64_t seed, ShareProgress& progress);
Result<sim::OpenbResult> PlayOpenb(const SimWords& words, const std::string& policy,
                                   std::int64_t seed, ShareProgress& progress);

// `over_time`: with who held GPUs when.
Result<sim::JobsResult> PlayJobs(const SimWords& words, const std::string& policy,
                                 ShareProgress& progress, bool over_time = false);

}  // namespace muster::cli

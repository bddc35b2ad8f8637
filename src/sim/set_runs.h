// SetRuns: several policies on one trace of the pollux or the openb set, with several seeds.
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
#include "model/document.h"
#include "sim/openb/experiment.h"
#include "sim/pollux/arena.h"
#include "sim/trace/files.h"

namespace muster::sim {

struct SetWish {
  bool openb = false;  // else pollux
  std::vector<std::string> policies = {};
  std::int64_t seed = 0;
  std::int64_t seeds = 1;  // from `seed` on
  std::string profiles = {}, workload = {};
  std::int64_t node_count = 0, gpus_per_node = 0;  // of pollux; 0: as published
  std::string nodes = {}, pods = {};
};

struct SetRuns {
  std::vector<model::DocNode> runs;  // by policy, then by seed
  std::string page;
};

model::DocNode ArenaNode(const std::string& policy, std::int64_t seed, const std::string& workload,
                         const ArenaResult& run);
model::DocNode OpenbNode(const std::string& policy, std::int64_t seed, const OpenbResult& run);

// The error names those that there are.
Result<void> CheckPolicies(const SetWish& wish);

// `pass` is told the share that is done; its error ends it.
Result<SetRuns> PlaySet(const SetWish& wish, const TraceFiles& files, const std::string& version,
                        Clock& clock, const std::function<Result<void>(double)>& pass);

}  // namespace muster::sim

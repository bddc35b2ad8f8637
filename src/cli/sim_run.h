// `muster sim run` and `muster sim compare`: policies on public traces, without a cluster.
//
// Two sets: `pollux` plays a workload of elastic training jobs in time, `openb` places pods until
// the cluster is full. What is printed follows from the files, the policy and the seed alone, but
// for the times that the run itself took.
#pragma once

#include <cstdint>
#include <string>

#include "cli/session.h"

namespace muster::cli {

struct SimWords {
  std::string set;       // "": as the files say
  std::string policy;    // of run
  std::string policies;  // of compare, with commas between them
  std::int64_t seed = 0;
  std::int64_t seeds = 1;  // of compare: from `seed` on
  std::string profiles, workload;
  std::int64_t node_count = 16, gpus_per_node = 4;  // of pollux
  std::string nodes, pods;
};

int RunSim(SimWords words, Output output);
int CompareSim(SimWords words, Output output);

}  // namespace muster::cli

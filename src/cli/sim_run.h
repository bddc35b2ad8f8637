// `muster sim run`, `compare` and `generate`: policies on traces, without a cluster.
//
// Three sets: `pollux` plays a workload of elastic training jobs in time, `openb` places pods until
// the cluster is full, `jobs` plays traces of rigid jobs in time. What is printed follows from the
// files, the policy and the seed alone, but for the times that the run itself took.
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
  std::int64_t node_count = 0, gpus_per_node = 0;  // of jobs and pollux; 0: as the set says
  std::string nodes, pods;
};

struct GenerateWords {
  std::int64_t jobs = 0;
  std::int64_t seed = 0;
  std::int64_t rate = 0;  // 0: as published
  std::string like = "gavel";
};

int RunSim(SimWords words, Output output);
int CompareSim(SimWords words, Output output);
int GenerateSim(const GenerateWords& words, Output output);

}  // namespace muster::cli

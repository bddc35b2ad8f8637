// `muster sim run`, `compare` and `generate`: policies on traces, without a cluster.
//
// A row a policy for people, with the mean of the seeds; a document with every run for programs.
// What is printed is the same for the same files, policies and seeds, but for the times that a run
// took.
#pragma once

#include <cstdint>
#include <string>

#include "cli/session.h"
#include "cli/sim_play.h"

namespace muster::cli {

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

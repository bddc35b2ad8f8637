// Diff: the same past under two policies, side by side: who gains, and who pays for it.
//
// Figures are over the jobs that ran to their end under both. A wait ends with the first start;
// what is waited after a pause shows in the completion time, from submission to end. Where the past
// has a truth it stands beside the old policy, so that one sees how near the replay comes. Lists
// are bounded, those that changed most first; curves have a fixed number of points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/document.h"
#include "sim/past/play_past.h"

namespace muster::sim {

struct Figures {
  double wait_s = 0;  // means
  double p90_wait_s = 0;
  double completion_s = 0;
  std::int64_t pauses = 0;
  double lost_gpu_hours = 0;
};

struct GroupDiff {
  std::string name;
  std::int64_t jobs = 0;
  Figures before, after;
};

struct JobDiff {
  JobNumber id = 0;
  std::string name, user, queue;
  double before_wait_s = 0, after_wait_s = 0;
  double before_s = 0, after_s = 0;  // completion times
};

struct Whole {
  Figures figures;
  double utilisation_pct = 0;
  double last_end_s = 0;  // since the beginning
  std::int64_t moves = 0;
  std::int64_t resizes = 0;
};

struct Curves {
  std::vector<double> waits_s;          // percentiles 0 to 100
  std::vector<double> completions_s;    // likewise
  std::vector<double> utilisation_pct;  // of equal parts of the stretch
};

struct Diff {
  std::int64_t jobs = 0;          // compared
  std::int64_t not_compared = 0;  // that did not end under one of them
  std::int64_t left_out = 0, still_there = 0, carried_over = 0;
  std::int64_t gpus = 0;
  std::int64_t from_ms = 0, to_ms = 0;
  bool recorded = false;
  Whole truth, before, after;
  std::vector<GroupDiff> queues, users;
  std::vector<JobDiff> gain, lose;  // the largest changes of the completion time
  Curves before_curves, after_curves;
};

Diff Compare(const Past& past, const Played& before, const Played& after);

model::DocNode DiffToNode(const Diff& diff);

}  // namespace muster::sim

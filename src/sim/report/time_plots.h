// TimePlots: what became of jobs over time, for every set that plays jobs in time.
//
// Completion times as a table by kind and as a distribution, the GPUs in use, and who held them
// when. Distributions and tables speak of all runs; what happened over time is shown of the first.
#pragma once

#include <string>
#include <vector>

#include "sim/report/page.h"
#include "sim/report/report.h"

namespace muster::sim::report {

// Times of one column are written in one unit: that of the longest.
std::vector<std::string> Durations(const std::vector<double>& seconds);

// The share of all GPU time until the last end that jobs held, in percent.
double Utilisation(const ArenaResult& run);

// By what a job has as its application, called `kind`.
Grid JctByKind(const std::vector<ArenaRuns>& policies, const std::string& kind);

// `of_seed`: said of what is shown of one run only.
void AddTimePlots(Page& page, const std::vector<ArenaRuns>& policies, const std::string& of_seed);

}  // namespace muster::sim::report

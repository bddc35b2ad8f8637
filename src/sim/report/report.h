// Report: what several policies did with one trace, as a page and its plots.
//
// Of each policy there is a run a seed, all with the same seeds. Tables and distributions speak of
// all of them; what happened over time is shown of the first. Times that a run itself took are left
// out, so the same inputs give the same bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/jobs/pooling.h"
#include "sim/jobs/run_jobs.h"
#include "sim/openb/experiment.h"
#include "sim/pollux/arena.h"
#include "sim/report/page.h"

namespace muster::sim::report {

struct Origin {
  std::string version;                                     // of Muster
  std::vector<std::pair<std::string, std::string>> files;  // what it is, and its path
  std::int64_t seed = 0;                                   // the first
};

struct ArenaRuns {
  std::string policy;
  std::vector<ArenaResult> runs;  // at least one
};
std::vector<File> ArenaReport(const Origin& origin, const std::vector<ArenaRuns>& policies);

struct JobsRun {  // no policy of this set has randomness
  std::string policy;
  JobsResult run;  // with what happened over time
};
std::vector<File> JobsReport(const Origin& origin, const std::vector<JobsRun>& policies);

struct OpenbRuns {
  std::string policy;
  std::vector<OpenbResult> runs;  // at least one
};
std::vector<File> OpenbReport(const Origin& origin, const std::vector<OpenbRuns>& policies);

// Of what DiffToNode says, or the API.
std::vector<File> DiffReport(const Origin& origin, const nlohmann::json& diff);
std::string SpanText(double seconds);  // "12 s", "3.4 min", "7.5 h"
// Of one trace on clusters of at least one size.
std::vector<File> PoolingReport(const Origin& origin, const PoolingResult& result);

// "0", or "42 to 51".
std::string SeedText(std::int64_t first, std::size_t count);
// For a heading: the names, or only how many where they are many.
std::string NameAll(std::size_t count, const std::string& names);
// What the note of a grid says of that; empty where there is nothing to compare.
std::string BestNote(const Grid& grid);
// Of a policy by its shown name: a figure and how it prints.
struct Rated {
  std::string name;
  double value = 0;
  std::string text;
};
// Which are best, oracles aside; those that print the same are equally good. None of fewer than
// two.
std::vector<bool> BestOf(const std::vector<Rated>& all, bool least);
// The same in a column, where rows are policies.
void MarkBest(Grid& grid, std::size_t column, const std::vector<double>& values, bool least);

}  // namespace muster::sim::report

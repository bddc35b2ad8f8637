// Running a scenario of the neutral corpus on the engine, and judging the outcome.
//
// The clock stands still. Before a round, workers told to leave have left; after it, a placed
// worker counts as running and one that was told to leave as pending. The strict fields of the
// corpus must hold from the round of convergence on (derived cases may take up to five) for all its
// stable rounds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/corpus.h"

namespace muster::sim {

struct SeenTask {
  TaskState state = TaskState::kPending;
  std::string node;
  std::int64_t gpu_milli = 0;
};

struct Round {
  std::vector<std::string> evicted;
  std::map<std::string, SeenTask> tasks;
};

struct ScenarioResult {
  std::string id;
  std::vector<std::string> differences;
  std::vector<Round> rounds;
  bool passed() const { return differences.empty(); }
};

struct ShareResult {
  std::string id;
  std::vector<std::string> differences;
  std::vector<std::map<std::string, double>> shares;  // one a part
  bool passed() const { return differences.empty(); }
};

Result<ScenarioResult> RunScenario(const Scenario& scenario);
ShareResult RunShareCase(const ShareCase& share);

}  // namespace muster::sim

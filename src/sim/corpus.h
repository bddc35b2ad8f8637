// The neutral scenario corpus: reading its JSON files into values.
//
// One file holds scenarios (a cluster, its queues and jobs, and the steady state that must follow)
// or fair-share cases (pure division). Numbers are kept as they stand: GPUs become thousandths, all
// other amounts are whole numbers of the file's own unit. A file that does not follow the schema is
// an error that names the scenario and the key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/fair_share.h"
#include "model/job.h"
#include "model/node.h"
#include "model/queue.h"

namespace muster::sim {

enum class TaskState : std::uint8_t {
  kPending,
  kRunning,
  kTerminating,
  kStuck,
  kFailed,
  kSucceeded,
  kGone
};
std::string Name(TaskState state);

struct Task {
  std::string name;
  TaskState state = TaskState::kPending;
  std::string node;  // empty: none
  std::uint64_t gpus = 0;
  std::int64_t started_s_ago = 0;
  int leaves_before_round = 0;
  bool returns_as_pending = false;
};

struct ScenarioJob {
  model::Job spec;  // one role per task, in the order of `tasks`
  std::int64_t created_s_ago = 0;
  std::optional<std::int64_t> stale_for_s;
  std::vector<Task> tasks;
};

struct TaskExpectation {
  std::optional<TaskState> state;
  std::string node;  // empty: not stated
};

struct JobExpectation {
  std::map<TaskState, int> counts;
  std::optional<std::int64_t> gpus_milli;
  std::map<std::string, TaskExpectation> tasks;
};

struct Scenario {
  std::string id;
  std::string title;
  bool deduced = false;
  bool doubtful = false;
  bool victims_may_move = true;
  std::int64_t move_limit = -1;
  std::vector<model::Node> nodes;
  std::vector<model::Topology> topologies;
  std::vector<model::Queue> queues;
  std::vector<ScenarioJob> jobs;
  int rounds_to_converge = 0;
  int stable_rounds = 0;
  bool no_evictions = false;
  std::map<std::string, JobExpectation> expect;
};

struct SharePart {
  bool over_quota_only = false;
  std::int64_t total = 0;
  std::int64_t scale = 1;  // units per number in the file: thousandths for GPUs
  std::vector<std::string> names;
  std::vector<engine::ShareClaim> claims;
  std::map<std::string, double> expect;
};

struct ShareCase {
  std::string id;
  std::vector<SharePart> parts;
};

struct CorpusFile {
  std::vector<Scenario> scenarios;
  std::vector<ShareCase> cases;
};

Result<CorpusFile> ReadCorpusFile(const std::string& path);
Result<CorpusFile> ParseCorpus(const std::string& path, std::string_view text);
// Files as they are; of a folder the files of each ending in turn, sorted by name.
Result<std::vector<std::string>> ListFiles(const std::vector<std::string>& paths,
                                           const std::vector<std::string>& extensions);

}  // namespace muster::sim

// Case: one readable scenario, as a value.
//
// A file states a cluster and its queues, then tells a story line by line (jobs come, cycles run,
// time passes, nodes go) and what must be true in between. Nothing is decided here: the runner in
// case_run.h plays the story on the engine. How to write one: docs/scenarios.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/cluster.h"
#include "model/job.h"
#include "model/node.h"
#include "model/plan.h"
#include "sim/case_words.h"

namespace muster::sim {

struct CaseNode {
  model::Node spec;
};

struct CaseJob {
  model::Job spec;
  std::int64_t age_ms = 0;
  std::int64_t started_ms_ago = 0;
  std::optional<std::int64_t> checkpoint_ms_ago;
  std::vector<CasePlace> running;  // the first workers, in order
};

struct CaseCycle {
  std::int64_t count = 1;
  bool early = false;   // workers that were told to leave are still there
  bool settle = false;  // until nothing happens any more
};

struct CaseAdvance {
  std::int64_t ms = 0;
};

enum class CaseOrderKind : std::uint8_t {
  kDown,
  kUp,
  kCordon,
  kDrain,
  kUncordon,
  kFinish,
  kHold,
  kRelease,
  kCheckpoint,
};

struct CaseOrder {
  CaseOrderKind kind = CaseOrderKind::kDown;
  std::string name;  // of a node or a job
};

// A job told how fast it is on a GPU type.
struct CaseSpeed {
  std::string name;  // of the job
  std::string type;
  std::int64_t step_ms = 0;    // on one GPU
  std::int64_t sync_ms = 0;    // more on several GPUs of a node,
  std::int64_t across_ms = 0;  // and on several nodes
};

// Where the workers of a job stand.
enum class CaseState : std::uint8_t { kAny, kRunning, kFull, kPending };

struct ExpectJob {
  std::string name;
  CaseState state = CaseState::kAny;
  bool apart = false;  // no two workers on one GPU
  std::optional<std::int64_t> running, pending, leaving, promised, gpus_milli;
  std::optional<std::int64_t> nodes, islands;  // how many its workers stand on
  std::vector<std::string> on;                 // exactly these nodes
  std::vector<std::string> types;              // exactly these GPU types
  std::vector<CasePlace> places;               // exactly these GPUs
  std::optional<std::size_t> link;             // the farthest that GPUs of a worker are apart
  std::string rule, cause;                     // of what made it leave in the last cycle
};

struct ExpectQueue {
  std::string name;
  model::Amounts share, held;
};

struct ExpectPlan {
  bool total = false;  // of all cycles so far, else of the last one
  bool empty = false;
  std::map<model::ActionKind, std::int64_t> counts;
  std::optional<std::int64_t> evictions;  // workers shrunk away or paused
};

// What `muster why` would tell; lists must be told among others.
struct ExpectWhy {
  std::string name;
  std::string gate, at, nearest;
  std::optional<std::int64_t> missing, fit, ahead;
  std::vector<std::string> nodes;    // "gpus:3": nodes that a filter rejects
  std::vector<std::string> holders;  // "team:quota:4": queue, right, GPUs
  std::vector<std::string> changes;  // "workers:1", "type:T4", "queue:b", "limit:org:2", ...
};

using CaseAct = std::variant<CaseNode, CaseJob, CaseCycle, CaseAdvance, CaseOrder, CaseSpeed,
                             ExpectJob, ExpectQueue, ExpectPlan, ExpectWhy>;

struct CaseStep {
  int line = 0;
  CaseAct act;
};

struct Case {
  std::string id;
  std::string rule;
  engine::Setup setup;
  std::map<std::string, std::int64_t> past_use;  // by queue, GPU-milliseconds
  std::vector<CaseStep> steps;
};

// All mistakes of the file in one error, each with its line and what is allowed.
Result<Case> ParseCase(const std::string& id, std::string_view text);
Result<Case> ReadCaseFile(const std::string& path);

inline constexpr const char* kCaseExtension = ".case";

}  // namespace muster::sim

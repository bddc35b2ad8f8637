// Simulations: what would have been under another policy, and what policies make of public traces,
// worked out beside the daemon's work.
//
// One thread at low priority, one simulation after the other; a few may wait. The journal is read
// in pieces between the scheduler's turns, and what is played is a copy, so nothing that runs hears
// of it. How far they are and what came out is kept in memory, of the ended ones the latest few;
// nothing is written, and a restart forgets them all. From any thread. What is asked for and what
// comes out are bounded, so that no simulation takes the memory that the daemon needs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/service.h"
#include "engine/policy.h"
#include "model/document.h"
#include "sim/jobs/generate.h"
#include "sim/past/past.h"
#include "sim/set_runs.h"

namespace muster::control {

struct SimulationWish {
  std::int64_t back_ms = 0;  // how far the journal is replayed
  std::string policy = {};   // a policy file: what it is replayed under, beside the present one
  std::string by = {};
  // These jobs instead of the journal's: a text, a file of the folder of traces, or made here.
  std::string trace = {};
  std::string workload = {};
  std::optional<sim::GenerateOptions> generate = {};
  std::int64_t nodes = 0;  // of such jobs; 0: as NodesOf says
  std::int64_t gpus_per_node = 8;
  // Several policies of the lab instead of all that, on those jobs or on a public set by the names
  // of its files.
  std::optional<sim::SetWish> set = {};
};

struct SimulationPlace {
  std::string traces = {};  // the folder whose files may be named; empty: none
  std::string version = {};
};

class Simulations {
 public:
  static constexpr std::size_t kMostWaiting = 4;
  static constexpr std::size_t kEndedKept = 16;

  Simulations(Service& service, Clock& clock, SimulationPlace place);
  ~Simulations();
  Simulations(const Simulations&) = delete;
  Simulations& operator=(const Simulations&) = delete;

  struct Run;
  // Reads what is asked for, which may be long. The error: a mistake in it.
  Result<std::shared_ptr<Run>> Prepare(SimulationWish wish) const;
  // Beside the policy that is in force now. The error: too many wait.
  Result<model::DocNode> Begin(const std::shared_ptr<Run>& run, const engine::Policy& now,
                               std::int64_t now_ms);
  // Without what came out.
  std::vector<model::DocNode> List() const;
  // As JSON: what came out may be large, and is written once.
  Result<std::string> Get(const std::string& id) const;
  // What came out as a page for people. The error: it is not done.
  Result<std::string> Page(const std::string& id) const;
  // One that has not ended is stopped, and stays as cancelled; one that has ended is forgotten.
  Result<model::DocNode> Drop(const std::string& id);

 private:
  using Shared = std::shared_ptr<Run>;

  Result<void> PrepareSet(Run& run) const;

  void Loop();
  struct Outcome {
    const char* key = "result";  // where it is shown
    std::string json = {};
    std::string page = {};
  };
  void Carry(Run& run);
  Result<Outcome> Simulate(Run& run);
  Result<Outcome> SimulateSet(Run& run, std::int64_t until_ns);
  Result<sim::Past> ReadPast(Run& run);
  Result<void> Pass(Run& run, double from, double share, std::int64_t until_ns);
  Shared Find(const std::string& id) const;
  static model::DocNode View(const Run& run);
  void Forget();

  Service& service_;
  Clock& clock_;
  const SimulationPlace place_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Shared> runs_;  // guarded by mutex_; oldest first
  std::uint64_t last_id_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace muster::control

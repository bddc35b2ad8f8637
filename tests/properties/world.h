// World: a Cluster with its Scheduler, driven by the events of a scene.
//
// Beside the Cluster it keeps the facts that were reported to it, as values of the model, so that
// checks can be made without believing the Cluster's own counters, and so that the same state can
// be built from scratch. Workers that a plan stops leave at once or some cycles later, as the event
// says. The clock is a number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drafts.h"
#include "engine/cluster.h"
#include "engine/cycle.h"
#include "model/plan.h"

namespace muster::properties {

struct NodeFact {
  model::Node spec;
  bool up = true, cordoned = false, draining = false;
};

struct WorkerFact {
  engine::WorkerState state = engine::WorkerState::kPending;
  engine::NodeId node = engine::kNone;
  std::uint64_t devices = 0;
  std::int64_t started_ms = 0;
};

struct JobFact {
  model::Job spec;
  std::int64_t submitted_ms = 0;
  std::int64_t checkpoint_ms = -1;
  std::int64_t stale_since_ms = -1;
  bool on_hold = false;
  std::vector<WorkerFact> workers;
};

// All that a Cluster is made of; jobs in the order of their arrival.
struct Facts {
  engine::Policy policy;
  std::vector<model::Queue> queues;
  std::vector<NodeFact> nodes;
  std::vector<JobFact> jobs;
};

std::unique_ptr<engine::Cluster> Build(const Facts& facts);

class World {
 public:
  using Change = engine::Policy (*)(engine::Policy);
  explicit World(const Scene& scene, Change change = nullptr);

  void Apply(const EventDraft& event);
  // Lets those leave whose time has come, then runs one cycle; its victims leave `slow` later.
  model::Plan Cycle(int slow);
  void LetAllLeave();
  // Cycles, everybody leaving in between, until nothing is left to decide; -1: `most` did not do.
  // A plan that is empty because a search was cut off is given the time until that is tried again.
  int Settle(int most, std::int64_t step_ms, const std::function<void(const model::Plan&)>& look);

  engine::Cluster& cluster() { return *cluster_; }
  const engine::Cluster& cluster() const { return *cluster_; }
  engine::Scheduler& scheduler() { return *scheduler_; }
  std::int64_t now_ms() const { return now_ms_; }
  Facts Snapshot() const;  // with the workers where the Cluster says they are

  engine::JobId Submit(const model::Job& job);
  void Finish(std::size_t index);
  const std::vector<JobFact>& jobs() const { return facts_.jobs; }
  const std::vector<NodeFact>& nodes() const { return facts_.nodes; }
  const JobFact& FactOf(engine::JobId job) const;

 private:
  struct Leaver {
    engine::WorkerRef ref;
    std::string job;
    int cycles = 0;
  };

  void Checkpoint(int pick);
  void EndWorker(int pick, engine::WorkerState state);
  void SetNode(int pick, EventKind kind);

  Facts facts_;
  std::vector<std::string> leaves_;
  std::unique_ptr<engine::Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::vector<Leaver> leavers_;
  std::int64_t now_ms_ = 1'000'000'000'000;
  int next_job_ = 0;
};

// One line an action and a promise, with names instead of handles.
std::string Describe(const model::Plan& plan, const engine::Cluster& cluster);

}  // namespace muster::properties

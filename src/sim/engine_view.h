// EngineView: the engine's Cluster, kept in step with the state by the events alone.
//
// The daemon and the replay both feed it: Build() from a state, Apply() for each event after it,
// Cycle() where the journal says that the engine was asked. The same calls give the same plans, so
// a journal replays to the same decisions. The cluster is derived and can be built again at any
// time. Only jobs that may run now are in it; one that waits for a person, another job, a time or
// its array's turn is not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/cluster.h"
#include "engine/cycle.h"
#include "engine/explain.h"
#include "model/event.h"
#include "model/plan.h"
#include "state/state.h"

namespace muster::sim {

using model::JobNumber;

// Why a job that has not ended is not among those the engine may start.
enum class Bar : std::uint8_t {
  kNone,
  kHeld,
  kSuspended,
  kFollows,
  kBackOff,
  kArrayTurn,
  kStopping
};

// All but the turn of an array's tasks, which is the view's to give.
Bar BarOf(const state::JobRecord& job, std::int64_t now_ms);

// A worker that left only because its gang is formed anew: the place stays its own.
bool KeepsPlace(const state::State& state, const state::JobRecord& job, std::uint32_t worker);

class EngineView {
 public:
  struct Settings {
    engine::Policy policy;  // until the state has one
    std::vector<model::Topology> topologies;
  };
  explicit EngineView(Settings settings) : settings_(std::move(settings)) {}

  Result<void> Build(const state::State& state, std::int64_t now_ms);

  // What the event changes; `state` has it folded in. What the engine itself decided changes
  // nothing, because its cluster has it already.
  void Apply(const model::Event& event, const state::State& state);
  // After new queues and after another policy this builds the cluster anew.
  Result<model::Plan> Cycle(const state::State& state, std::int64_t now_ms);

  // The one in force.
  engine::Policy PolicyOf(const state::State& state) const;
  JobNumber NumberOf(engine::JobId id) const { return numbers_[id]; }
  const std::string& NodeName(engine::NodeId id) const { return cluster_->nodes().spec(id).name; }
  bool Has(JobNumber job) const { return ids_.contains(job); }
  bool HasPlace(JobNumber job, std::uint32_t worker) const;
  // From when on the last cycle kept room for the job; none: it did not.
  std::optional<std::int64_t> ReservedFrom(JobNumber job) const;
  // Tasks of the array that have their turn.
  std::int64_t TasksOf(JobNumber array) const;

  // Whether the job could ever run: its queue and the limits above it, its shape. Changes nothing.
  Result<void> Admit(const model::Job& spec, std::int64_t now_ms);
  std::optional<engine::Explanation> Explain(JobNumber job, std::int64_t now_ms);
  // The gate alone, without a look at the nodes.
  std::optional<engine::Explanation> ExplainGate(JobNumber job, std::int64_t now_ms);
  // Whether no node is a real one and some carry this label: `virtual` or `simulated`.
  bool AllMarked(const std::string& label) const;
  const engine::Cluster& cluster() const { return *cluster_; }

 private:
  struct Applier;
  // Brings one job in line with its record: in, out, or on hold.
  void Sync(const state::JobRecord& job, std::int64_t now_ms);
  void Remove(JobNumber job);
  void NextTasks(const state::State& state, JobNumber array, std::int64_t now_ms);
  void SetLeaving(JobNumber job, std::uint32_t worker);
  void SetGone(JobNumber job, std::uint32_t worker, bool succeeded);
  void SetNode(const state::NodeRecord& node);
  Result<void> AddNode(const state::NodeRecord& node);
  void SetReservations(const state::State& state);
  void SetPastUse(const std::map<std::string, std::int64_t>& gpu_ms);
  Result<engine::JobId> Add(const state::JobRecord& job, std::int64_t now_ms);
  void Place(engine::JobId id, std::uint32_t worker, const state::WorkerRecord& record);

  Settings settings_;
  std::unique_ptr<engine::Cluster> cluster_;
  // The same nodes and queues without jobs: what can never run is asked there, so that refused jobs
  // leave no trace in the cluster that decides.
  std::unique_ptr<engine::Cluster> empty_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::unordered_map<JobNumber, engine::JobId> ids_;
  std::vector<JobNumber> numbers_;                     // by engine id
  std::unordered_map<JobNumber, JobNumber> array_of_;  // the tasks that are in
  std::unordered_map<JobNumber, std::int64_t> tasks_;  // by array
  std::unordered_map<JobNumber, JobNumber> cursor_;  // by array: none before it waits for its turn
  std::set<std::pair<std::int64_t, JobNumber>> later_;  // jobs that back off, by when it is over
  std::int64_t real_nodes_ = 0;
  std::map<std::string, std::int64_t> marked_nodes_;  // by label
  bool outdated_ = false;                             // queues or policy have changed
  std::map<JobNumber, std::int64_t> reserved_;        // and from when on
};

}  // namespace muster::sim

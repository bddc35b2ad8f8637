// Runs: what jobs report of their training, gathered while they run and kept when they have ended.
//
// A report without a step is on no curve. Of a gang one worker is listened to, the first that
// speaks and any before it in rank; when it has been silent for kSilentMs the next that speaks
// takes its place. A kept model is taken from whoever has one. Runs of jobs that live are in memory
// and written every few seconds, when a job ends and when the daemon does; a daemon that is killed
// loses what came since. Nothing here is an input of a decision, and a store that fails stops no
// job.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "contract/records.h"
#include "model/document.h"
#include "state/records.h"
#include "state/run_store.h"

namespace muster::control {

class Access;

class Runs {
 public:
  explicit Runs(std::unique_ptr<state::RunStore> store) : store_(std::move(store)) {}

  void Hear(const state::JobRecord& job, std::uint32_t worker, const contract::Report& report);
  void Ended(const state::JobRecord& job);
  // Writes what is due; at the end all of it. Drops what is older than `oldest_ms`, now and then.
  void Keep(std::int64_t now_ms, std::int64_t oldest_ms, bool all = false);

  std::optional<state::RunHead> Head(model::JobNumber job);
  std::optional<state::Run> Find(model::JobNumber job);
  std::vector<model::JobNumber> Latest(std::size_t most);  // newest first

 private:
  state::Run* Live(const state::JobRecord& job);

  std::unique_ptr<state::RunStore> store_;
  std::map<model::JobNumber, state::Run> live_;
  std::set<model::JobNumber> unsaved_;
  std::int64_t saved_ms_ = 0;
  std::int64_t dropped_ms_ = 0;
};

// `job`: as it is now; null: it has ended, as the head says.
model::DocNode RunView(const state::RunHead& head, const state::JobRecord* job,
                       std::int64_t now_ms);
// With the job's file and every point.
model::DocNode RunDetailView(const state::Run& run, const state::JobRecord& job,
                             const Access& access, std::int64_t now_ms);

}  // namespace muster::control

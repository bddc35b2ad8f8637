// SwarmRun: one seed, played from an empty store to the last check.
//
// A daemon of its own (controller on the swarm's store, pool and clock) is given random commands
// while things fail, as control/service.cc would drive it. Then the faults end, everything is let
// run out, and the journal is judged. Returns what was wrong, or nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/controller.h"
#include "swarm_pool.h"
#include "swarm_store.h"
#include "swarm_story.h"

namespace muster::swarm {

struct Tally {
  std::int64_t events = 0;
  std::int64_t jobs = 0;
  std::int64_t launches = 0;
  std::int64_t crashes = 0;
  std::int64_t recoveries = 0;
  std::int64_t replayed = 0;  // decisions
  std::int64_t preemptions = 0;
};

class SwarmRun {
 public:
  explicit SwarmRun(std::uint64_t seed);
  void Play();
  void Keep(std::size_t lines) { story_.kept = lines; }
  const Story& story() const { return story_; }
  const Tally& tally() const { return tally_; }

 private:
  using JobNumber = model::JobNumber;

  void Boot();
  // One round of the daemon, with what was asked for before it.
  void Round();
  void Act();
  void Submit();
  void Command();
  void SetPolicy();
  void Reserve(const std::string& node);
  void Trouble();
  void Calm();
  void LetRunOut();
  bool Done() const;
  void CheckRest();
  void CheckWaiting(const state::JobRecord& job);
  void CheckAudit();
  void CheckReplay();
  void CheckLimits();
  JobNumber AnyJob();

  Story story_;
  Random random_;
  std::vector<model::Node> nodes_;
  std::vector<model::Queue> queues_;
  SwarmStore store_;
  SwarmPool pool_;
  control::Settings settings_;
  std::unique_ptr<control::Controller> control_;
  bool healthy_ = false;
  std::vector<JobNumber> asked_;     // submitted in this round
  std::vector<JobNumber> accepted_;  // and committed
  std::int64_t round_ = 0;           // each leaves a row in the audit trail, also when idle
  std::set<std::int64_t> audited_;   // rounds that were committed
  Tally tally_;
};

// Everything that the journal must show, given what really happened in the pool.
void JudgeJournal(Story& story, const SwarmStore& store, const SwarmPool& pool,
                  const state::State& end, Tally& tally);

}  // namespace muster::swarm

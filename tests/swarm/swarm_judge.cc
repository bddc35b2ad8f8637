// The journal folded again from the first record, against what the machines really did.
#include <algorithm>
#include <map>

#include "swarm_run.h"

namespace muster::swarm {

using model::JobNumber;
using pools::LaunchKey;

namespace {

std::string Text(const model::ExitFacts& exit) {
  return " code " + std::to_string(exit.exit_code) + " signal " + std::to_string(exit.signal) +
         (exit.stopped ? " stopped" : "") + (exit.lost ? " lost" : "") + " at " +
         std::to_string(exit.ended_ms) + exit.failure;
}

class Judge {
 public:
  Judge(Story& story, const SwarmPool& pool) : story_(story), pool_(pool) {}

  void operator()(const model::JobSubmitted& e) {
    for (JobNumber id = e.job; id < state.next_job(); ++id) follows_[id] = e.follows;
  }
  void operator()(const model::WorkerPlaced& e) {
    const auto* job = state.Find(e.job);
    for (const auto& f : follows_[e.job]) Followed(e.job, f);
    if (job->stopping != model::StopWhy::kNone) Wrong(e.job, "is given a place while it stops");
    if (job->held || job->suspended) Wrong(e.job, "is given a place and is held");
  }
  void operator()(const model::WorkerEnded& e) { Exit({e.job, e.worker, e.launch}, e.exit); }
  void operator()(const model::WorkerLeaving& e) { Preempted(e.job); }
  void operator()(const model::JobEnded& e) {
    if (ended_.contains(e.job)) Wrong(e.job, "ends twice");
    ended_[e.job] = e.end;
    Preempted(e.job);
    const auto* job = state.Find(e.job);
    if (e.why == model::StopWhy::kTimeLimit && job->ran_ms < job->spec->limits.time_ms) {
      Wrong(e.job, "is ended by its time limit too early");
    }
  }
  template <typename Other>
  void operator()(const Other&) {}

  state::State state;

 private:
  void Wrong(JobNumber job, const std::string& what) {
    story_.Wrong("job " + std::to_string(job) + " " + what + " (revision " +
                 std::to_string(state.revision()) + ")");
  }
  void Followed(JobNumber job, const model::Follows& f) {
    const auto* array = state.FindArray(f.job);
    bool over = false, good = false;
    if (array != nullptr) {
      over = array->Ended();
      good = array->succeeded == array->tasks;
    } else if (const auto end = ended_.find(f.job); end != ended_.end()) {
      over = true;
      good = end->second == model::End::kSucceeded;
    }
    const bool met = over && (f.condition == model::AfterCondition::kAny ||
                              (f.condition == model::AfterCondition::kOk) == good);
    if (!met) Wrong(job, "starts before job " + std::to_string(f.job) + " allows it");
  }
  void Exit(const LaunchKey& key, const model::ExitFacts& exit) {
    const auto found = pool_.truth().find(key);
    const auto name = "launch " + key.Name();
    if (found == pool_.truth().end()) {
      const bool fair = exit.lost || exit.stopped || !exit.failure.empty();
      if (!fair) story_.Wrong(name + " never began and has an exit");
      return;
    }
    if (!found->second) return story_.Wrong(name + " lives and has an exit");
    // One that was told to stop and whose end nobody saw is taken for stopped.
    const bool unseen = found->second->shim_dies || found->second->node_died;
    if ((exit.lost || exit.stopped) && unseen) return;
    if (exit == found->second->exit) return;
    story_.Wrong(name + " ended with" + Text(found->second->exit) + "; the journal says" +
                 Text(exit));
  }
  void Preempted(JobNumber id) {
    const auto& list = state.Find(id)->preemptions;
    auto& before = preempted_[id];
    const auto same = [](const state::Preemption& a, const state::Preemption& b) {
      return a.at_ms == b.at_ms && a.why == b.why && a.rule == b.rule && a.cause == b.cause;
    };
    if (before.size() < state::kPreemptionsKept &&
        (list.size() < before.size() ||
         !std::equal(before.begin(), before.end(), list.begin(), same))) {
      Wrong(id, "has its preemptions rewritten");
    }
    before = list;
  }

  Story& story_;
  const SwarmPool& pool_;
  std::map<JobNumber, std::vector<model::Follows>> follows_;
  std::map<JobNumber, model::End> ended_;
  std::map<JobNumber, std::vector<state::Preemption>> preempted_;
};

}  // namespace

void JudgeJournal(Story& story, const SwarmStore& store, const SwarmPool& pool,
                  const state::State& end, Tally& tally) {
  Judge judge(story, pool);
  for (const auto& record : store.all()) {
    auto body = model::DecodeEvent(record.body);
    judge.state.Fold({record.at_ms, *body});
    std::visit(judge, *body);
  }
  tally.events += std::ssize(store.all());
  for (const auto& [id, job] : judge.state.jobs()) tally.preemptions += job.preempted;
  if (judge.state.Encode() != end.Encode()) story.Wrong("the journal folds to another state");
  std::set<JobNumber> rows;
  for (const auto& row : store.history()) {
    if (!rows.insert(row.job).second) story.Wrong("history has a job twice");
  }
  for (const auto& [id, job] : end.jobs()) {
    if (job.ending.has_value() != rows.contains(id)) {
      story.Wrong("history and state differ about job " + std::to_string(id));
    }
  }
  for (const auto& [key, process] : pool.truth()) {
    const auto* job = judge.state.Find(key.job);
    if (job == nullptr || key.worker >= job->workers.size() ||
        job->workers[key.worker].launch < key.launch) {
      story.Wrong("launch " + key.Name() + " ran and no attempt of its job says so");
    }
  }
}

}  // namespace muster::swarm

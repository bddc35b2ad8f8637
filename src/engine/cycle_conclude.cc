// The end of a cycle: what was tried becomes the plan.
#include <algorithm>

#include "engine/cycle_steps.h"

namespace muster::engine {

using model::Action;
using model::ActionKind;
using model::Rule;

// A piece that was promised room on which nobody stands any more (those who were to leave it had
// only been placed in this very cycle) starts now, unless others of its job are on their way.
void Scheduler::Steps::StartWhereRoomIsFree() {
  std::map<JobId, bool> ready;
  for (const auto& [ref, before] : changes_) {
    if (!cluster_.worker(ref).place.promised) continue;
    const auto [found, added] = ready.try_emplace(ref.job, true);
    found->second &= before.state == WorkerState::kPending && cluster_.RoomIsFree(ref);
  }
  for (const auto& [ref, before] : changes_) {
    Place place = cluster_.worker(ref).place;
    if (!place.promised || !ready.at(ref.job)) continue;
    place.promised = false;
    cluster_.Move(ref, place);
  }
}

// A job that others of its workers are leaving in this plan starts nobody unless it runs with whom
// it then has: what was meant for it is given out again in the next cycle.
void Scheduler::Steps::TakeBackBrokenStarts() {
  std::map<JobId, std::vector<WorkerRef>> starts, absent;
  for (const auto& [ref, before] : changes_) {
    const Place& now = cluster_.worker(ref).place;
    if (before.state == WorkerState::kRunning && now != before) {
      absent[ref.job].push_back(ref);
    } else if (now.Holds() && now.fresh) {
      (now.promised ? absent : starts)[ref.job].push_back(ref);
    }
  }
  for (const auto& [job, started] : starts) {
    if (!absent.contains(job)) continue;
    const auto mark = cluster_.mark();
    for (const auto& ref : absent[job]) cluster_.Move(ref, Place{});
    const bool runs = cluster_.job(job).Satisfied();
    cluster_.RollbackTo(mark);
    if (runs) continue;
    for (const auto& ref : started) cluster_.Move(ref, Place{});
  }
}

// How many workers of a leaf group were there before those that start now.
void Scheduler::Steps::CountStarts() {
  there_before_.clear();
  for (const auto& [ref, before] : changes_) {
    const Place& now = cluster_.worker(ref).place;
    if (before.state == WorkerState::kRunning || now.state != WorkerState::kRunning) continue;
    if (now.promised) continue;
    const auto group = cluster_.worker(ref).group;
    const auto active = cluster_.job(ref.job).groups[group].active;
    --there_before_.try_emplace({ref.job, group}, active).first->second;
  }
}

// Turns what was tried into what is: starts are started, victims are leaving, promises are hints.
void Scheduler::Steps::Conclude() {
  cluster_.ListChanges(changes_);
  StartWhereRoomIsFree();
  TakeBackBrokenStarts();
  CountStarts();
  ConcludeReservations();
  runs_.clear();
  for (const auto& [ref, before] : changes_) {
    runs_.try_emplace(ref.job, cluster_.job(ref.job).Satisfied());
  }
  for (const auto& [ref, before] : changes_) {
    const Place now = cluster_.worker(ref).place;
    if (now == before) continue;
    touched_.push_back(ref.job);
    if (before.state == WorkerState::kRunning) {
      ConcludeVictim(ref, before, now);
    } else if (now.state == WorkerState::kRunning) {
      ConcludeStart(ref, before, now);
    }
  }
  RefreshTouched();
  if (!cluster_.policy().keep_promises) hints_.clear();
  cluster_.SetHints(hints_);
  cluster_.ForgetLog();
  for (const auto& [ref, before] : changes_) {
    const JobState& job = cluster_.job(ref.job);
    if (job.stale_since_ms >= 0 && job.Satisfied()) cluster_.SetStaleSince(ref.job, -1);
  }
}

void Scheduler::Steps::ConcludeStart(WorkerRef ref, const Place& before, const Place& now) {
  const NodeId node = cluster_.nodes().bank(now.bank).node;
  if (now.promised) {
    plan_.promises.push_back({ref.job, ref.index, node});
    hints_.emplace_back(ref, now.bank);
    cluster_.Move(ref, before);
    return;
  }
  Place started = now;
  started.fresh = false;
  cluster_.Move(ref, started);
  cluster_.SetStarted(ref, now_ms_);
  const auto group = cluster_.worker(ref).group;
  auto& there = there_before_[{ref.job, group}];
  const bool grows = there >= cluster_.job(ref.job).groups[group].minimum;
  ++there;
  Action action;
  action.kind = grows ? ActionKind::kGrow : ActionKind::kStart;
  action.job = ref.job;
  action.worker = ref.index;
  action.node = node;
  action.devices = now.devices;
  action.cause = ref.job;
  plan_.actions.push_back(action);
}

void Scheduler::Steps::ConcludeVictim(WorkerRef ref, const Place& before, const Place& now) {
  const JobState& job = cluster_.job(ref.job);
  const Cause cause = causes_.at(ref);
  Action action;
  action.rule = cause.rule;
  action.cause = cause.claimer;
  action.job = ref.job;
  action.worker = ref.index;
  action.node = cluster_.nodes().bank(before.bank).node;
  action.devices = before.devices;
  if (now.promised) {
    if (cause.rule != Rule::kResize) action.rule = Rule::kConsolidate;
    action.kind = ActionKind::kMove;
    action.to_node = cluster_.nodes().bank(now.bank).node;
    hints_.emplace_back(ref, now.bank);
  } else {
    action.kind = runs_.at(ref.job) ? ActionKind::kShrink : ActionKind::kPause;
    const auto lost = cluster_.LostWorkMs(job, before.charge_milli, now_ms_);
    action.lost_gpu_ms =
        action.kind == ActionKind::kShrink ? std::min<std::int64_t>(lost, 0) : lost;
  }
  Place leaving = before;
  leaving.state = WorkerState::kLeaving;
  cluster_.Move(ref, leaving);
  plan_.actions.push_back(action);
}

}  // namespace muster::engine

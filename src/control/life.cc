// The life of jobs and workers: what pools report, what is due, how jobs end and come back.
#include <algorithm>
#include <bit>
#include <set>

#include "base/check.h"
#include "control/controller.h"
#include "control/idle.h"
#include "control/runs.h"

namespace muster::control {

using model::End;
using pools::LaunchKey;
using pools::PoolEvent;
using state::JobRecord;
using state::WorkerPhase;

namespace {

constexpr std::int64_t kIdleUnknownMs = 5'000;
constexpr std::int64_t kSteadyMs = 5'000;
constexpr std::int64_t kIdleLookMs = 500;          // at the soonest
constexpr std::int64_t kIdleWarnedLookMs = 5'000;  // at the latest: the warning is taken back soon
constexpr std::int64_t kMostPauseMs = 7LL * 86'400'000;  // workers may tell anything

model::ExitFacts Done() {
  model::ExitFacts exit;
  exit.exit_code = 0;
  return exit;
}

// How far the workers are that do the work; services only serve them.
struct Progress {
  bool working = false;     // one of them holds a place
  bool unfinished = false;  // one was told to leave before it was done, and the job needs it
  bool succeeded = false;   // one of them has
};

Progress Look(const JobRecord& job) {
  const auto roles = WorkerRoles(*job.spec);
  const auto& all = job.spec->roles;
  const bool served = !std::all_of(all.begin(), all.end(), IsService);
  Progress progress;
  if (FirstWorkerDecides(*job.spec) && !job.workers.empty() &&
      job.workers[0].phase == WorkerPhase::kSucceeded) {
    progress.succeeded = true;
    return progress;
  }
  // A job that was scaled down has records of workers that its spec no longer has.
  const auto count = std::min(roles.size(), job.workers.size());
  for (std::size_t w = 0; w < count; ++w) {
    if (served && IsService(all[static_cast<std::size_t>(roles[w])])) continue;
    const auto& worker = job.workers[w];
    progress.working |= worker.Holds();
    progress.succeeded |= worker.phase == WorkerPhase::kSucceeded;
    progress.unfinished |= worker.phase == WorkerPhase::kWaiting &&
                           worker.why != model::StopWhy::kNone &&
                           worker.why != model::StopWhy::kShrunk;
  }
  return progress;
}

bool Applies(const state::WorkerRecord& worker, std::uint32_t launch) {
  return worker.launch == launch && worker.Holds();
}

// Workers of the elastic runtime have all that one of them had: when one is killed or lost those
// that are left go on, if they are enough, and the scheduler finds a place for it again. One that
// ended soon after its start would end so again.
bool GoesOnWithout(const JobRecord& job, std::uint32_t worker, const model::ExitFacts& exit) {
  const auto& spec = *job.spec;
  if (spec.framework != model::Framework::kMuster || spec.groups.size() != 1) return false;
  if (exit.oom || (exit.signal == 0 && !exit.lost)) return false;
  const auto started_ms = job.workers[worker].started_ms;
  if (started_ms == 0 || exit.ended_ms - started_ms < kSteadyMs) return false;
  const auto left = job.Count(WorkerPhase::kPlaced) + job.Count(WorkerPhase::kRunning);
  return static_cast<std::int64_t>(left) >= spec.groups[0].minimum;
}

// Of a batch that all GPUs of the job share; what was told of another number of workers than it has
// now is of no use.
bool OfAllGpus(const JobRecord& job, std::int64_t workers, model::Speed& speed) {
  std::set<std::string> nodes;
  std::int64_t running = 0;
  for (const auto& worker : job.workers) {
    if (worker.phase != WorkerPhase::kRunning) continue;
    ++running;
    speed.gpus += std::popcount(worker.devices);
    nodes.insert(worker.node);
  }
  if (running != workers || speed.gpus == 0) return false;
  speed.nodes = static_cast<std::int32_t>(nodes.size());
  speed.samples = std::max(1, speed.samples / speed.gpus);
  return true;
}

// What no training job can have told in earnest is dropped.
bool Sound(const model::Speed& speed) {
  return speed.nodes >= 1 && speed.gpus >= speed.nodes && speed.samples >= 1 &&
         speed.compute_us >= 1 && speed.step_us >= speed.compute_us && speed.noise_milli >= 0 &&
         speed.first_batch >= 1 && speed.most_batch >= speed.first_batch &&
         speed.least_samples >= 1 && speed.most_samples >= speed.least_samples;
}

}  // namespace

void Controller::Handle(const PoolEvent& event) {
  const auto known = [&]() -> const state::WorkerRecord* {
    const auto* job = state_.Find(event.key.job);
    if (job == nullptr || job->ending || event.key.worker >= job->workers.size()) return nullptr;
    const auto& worker = job->workers[event.key.worker];
    return Applies(worker, event.key.launch) ? &worker : nullptr;
  };
  switch (event.kind) {
    case PoolEvent::Kind::kStarted:
      if (const auto* worker = known(); worker != nullptr && worker->started_ms == 0) {
        Emit(model::WorkerStarted{event.key.job, event.key.worker, event.key.launch, event.pid,
                                  event.at_ms, event.text});
        CheckJob(event.key.job);
      }
      return;
    case PoolEvent::Kind::kEnded:
      return HandleEnd(event.key, event.exit);
    case PoolEvent::Kind::kCheckpoint:
      if (known() == nullptr) return;
      return Emit(model::CheckpointTaken{event.key.job, event.at_ms, event.step});
    case PoolEvent::Kind::kSpeed:
      if (known() == nullptr) return;
      return HandleSpeed(event);
    case PoolEvent::Kind::kResized:
      // Shims tell again after a restart of the daemon; of a gang only one worker tells.
      if (known() == nullptr || event.at_ms <= state_.Find(event.key.job)->resized_ms) return;
      return Emit(model::JobResized{event.key.job, event.at_ms, event.workers,
                                    std::clamp<std::int64_t>(event.pause_ms, 0, kMostPauseMs),
                                    event.step});
    case PoolEvent::Kind::kReport:
      return HandleReport(event.key);
    case PoolEvent::Kind::kNodeUp:
    case PoolEvent::Kind::kNodeDown: {
      const auto node = state_.nodes().find(event.node);
      const bool up = event.kind == PoolEvent::Kind::kNodeUp;
      if (node == state_.nodes().end() || node->second.up == up) return;
      if (!up) {
        std::vector<LaunchKey> lost;
        for (const auto& [id, job] : state_.jobs()) {
          for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
            const auto& worker = job.workers[w];
            if (worker.Holds() && worker.node == event.node) lost.push_back({id, w, worker.launch});
          }
        }
        model::ExitFacts exit;
        exit.lost = true;
        exit.ended_ms = NowMs();
        for (const auto& key : lost) HandleEnd(key, exit);
      }
      return Emit(model::NodeWent{event.node, up, event.text});
    }
  }
}

void Controller::HandleReport(const LaunchKey& key) {
  const auto* job = state_.Find(key.job);
  if (ports_.runs == nullptr || job == nullptr || key.worker >= job->workers.size()) return;
  const auto& worker = job->workers[key.worker];
  auto* pool = Applies(worker, key.launch) ? PoolOf(worker.node) : nullptr;
  const auto report = pool == nullptr ? std::nullopt : pool->ReportOf(key);
  if (report) ports_.runs->Hear(*job, key.worker, *report);
}

void Controller::HandleSpeed(const PoolEvent& event) {
  const JobRecord& job = *state_.Find(event.key.job);
  model::Speed speed = event.speed;
  if (speed.gpus == 0 && !OfAllGpus(job, event.workers, speed)) return;
  if (!Sound(speed)) return;
  if (speed.gpu_type.empty()) speed.gpu_type = state_.GpuTypeOf(job);
  Emit(model::SpeedReported{job.id, std::move(speed)});
}

void Controller::HandleEnd(const LaunchKey& key, const model::ExitFacts& exit) {
  const auto* job = state_.Find(key.job);
  std::string node;
  if (job != nullptr && key.worker < job->workers.size()) node = job->workers[key.worker].node;
  if (job == nullptr || job->ending || node.empty() ||
      !Applies(job->workers[key.worker], key.launch)) {
    // Known already, from before a restart: only the pool has not been told.
    effects_.push_back({Effect::Kind::kForget, key, ""});
    return;
  }
  ordered_.erase(key);
  starting_.erase(key);
  Emit(model::WorkerEnded{key.job, key.worker, key.launch, exit});
  effects_.push_back({Effect::Kind::kForget, key, node});
  AfterExit(key.job, key.worker, exit);
}

void Controller::AfterExit(JobNumber id, std::uint32_t worker, const model::ExitFacts& exit) {
  const JobRecord& job = *state_.Find(id);
  const auto phase = job.workers[worker].phase;
  if (sim::KeepsPlace(state_, job, worker)) {
    // It keeps its place; with the last of them gone all start together.
    const auto& kept = job.workers[worker];
    Emit(model::WorkerPlaced{id, worker, kept.launch + 1, kept.node, kept.devices,
                             model::ActionKind::kStart, true});
    return Start(id);
  }
  if (job.stopping != StopWhy::kNone) {
    if (!job.Holds()) Settle(id, worker, exit);
    return;
  }
  if (phase == WorkerPhase::kFailed) {
    return GoesOnWithout(job, worker, exit) ? TellSize(id) : FailGang(id, worker, exit);
  }
  const auto progress = Look(job);
  const auto why = job.workers[worker].why;
  if (progress.succeeded && !progress.working) {
    // Where some were done when others had to leave, what is left cannot go on: all begin anew.
    const bool done = !progress.unfinished;
    if (job.Holds()) return StopJob(id, done ? StopWhy::kMemberDone : StopWhy::kRegrouped, "");
    if (!done) return Emit(model::JobRequeued{id, why, false, 0});
    return EndJob(id, End::kSucceeded, StopWhy::kNone, worker,
                  phase == WorkerPhase::kSucceeded ? exit : Done());
  }
  if (!job.Holds() && job.Count(WorkerPhase::kSucceeded) > 0) {  // only services were done
    return Emit(model::JobRequeued{id, why, false, 0});
  }
  // A rigid gang that lost a member to the scheduler starts anew once all have left.
  if (NeedsRegroup(*job.spec)) Start(id);
}

// All workers of a job that was told to stop have gone.
void Controller::Settle(JobNumber id, std::uint32_t worker, const model::ExitFacts& exit) {
  const JobRecord& job = *state_.Find(id);
  switch (job.stopping) {
    case StopWhy::kCancelled:
    case StopWhy::kDependency:
      return EndJob(id, End::kCancelled, job.stopping, worker, exit);
    case StopWhy::kTimeLimit:
    case StopWhy::kIdleLimit:
      return EndJob(id, End::kFailed, job.stopping, worker, exit);
    case StopWhy::kMemberDone:
      return EndJob(id, End::kSucceeded, StopWhy::kNone, 0, Done());
    case StopWhy::kMemberFailed: {
      // The exit that began it decides; the others were told to go.
      for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
        if (job.workers[w].phase == WorkerPhase::kFailed) {
          return FailGang(id, w, *job.workers[w].exit);
        }
      }
      return FailGang(id, worker, exit);
    }
    default: {
      const auto progress = Look(job);
      if (progress.succeeded && !progress.unfinished) {  // it was done before it could be stopped
        return EndJob(id, End::kSucceeded, StopWhy::kNone, worker, Done());
      }
      // Suspended, requeued, never started: it waits again.
      return Emit(model::JobRequeued{id, job.stopping, false, 0});
    }
  }
}

void Controller::FailGang(JobNumber id, std::uint32_t worker, const model::ExitFacts& exit) {
  const JobRecord& job = *state_.Find(id);
  if (job.Holds()) return StopJob(id, StopWhy::kMemberFailed, "");
  const bool ours = exit.lost;  // not the job's fault: it does not count
  if (!ours && job.failures >= static_cast<std::uint32_t>(job.spec->limits.retries)) {
    return EndJob(id, End::kFailed, StopWhy::kNone, worker, exit);
  }
  const auto tries = std::min<std::uint32_t>(ours ? job.restarts : job.failures, 20);
  const auto back_off = std::min(settings_.most_back_off_ms, settings_.first_back_off_ms << tries);
  Emit(model::JobRequeued{id, StopWhy::kMemberFailed, !ours, NowMs() + back_off});
  Arm(NowMs() + back_off, id);
}

void Controller::StopJob(JobNumber id, StopWhy why, const std::string& by) {
  Emit(model::JobStopping{id, why, by});
  const JobRecord& job = *state_.Find(id);
  const auto how = why == StopWhy::kMemberFailed ? Effect::Kind::kKill : Effect::Kind::kStop;
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    const auto phase = job.workers[w].phase;
    if (phase != WorkerPhase::kPlaced && phase != WorkerPhase::kRunning) continue;
    Leave({id, w, why, model::Rule::kFreeCapacity, 0, -1}, how);
  }
  EndUnordered();
  const JobRecord* after = state_.Find(id);
  if (after == nullptr || after->ending) return;
  model::ExitFacts exit;
  exit.stopped = true;
  exit.ended_ms = NowMs();
  if (!after->Holds() && after->stopping == why) return Settle(id, 0, exit);
  CheckJob(id);
}

void Controller::EndJob(JobNumber id, End end, StopWhy why, std::uint32_t worker,
                        const model::ExitFacts& exit) {
  const JobRecord& before = *state_.Find(id);
  const JobNumber array = before.array;
  // Who follows is looked at before the fold lets go of it.
  const auto followers = [this](JobNumber of) {
    const auto span = state_.Followers(of);
    return std::vector<JobNumber>(span.begin(), span.end());
  };
  const auto disappointed = [this](JobNumber follower, JobNumber of, End how) {
    const auto* job = state_.Find(follower);
    if (job == nullptr || job->ending) return false;
    return std::any_of(job->follows.begin(), job->follows.end(), [&](const auto& f) {
      if (f.job != of || f.condition == model::AfterCondition::kAny) return false;
      return (f.condition == model::AfterCondition::kOk) != (how == End::kSucceeded);
    });
  };
  for (const auto f : followers(id)) {
    if (disappointed(f, id, end)) refused_.push_back(f);
  }
  const auto* whole = array == 0 ? nullptr : state_.FindArray(array);
  if (whole != nullptr && whole->succeeded + whole->failed + whole->cancelled + 1 == whole->tasks) {
    const bool good = end == End::kSucceeded && whole->succeeded + 1 == whole->tasks;
    for (const auto f : followers(array)) {
      if (disappointed(f, array, good ? End::kSucceeded : End::kFailed)) refused_.push_back(f);
    }
  }
  Emit(model::JobEnded{id, end, why, worker, exit});
  const JobRecord& job = *state_.Find(id);
  history_.push_back({id, job.spec->name, job.user, job.spec->queue, std::string(Name(end)),
                      job.submitted_ms, job.ending->at_ms, state::EncodeJobRecord(job)});
  outlook_.Ended(job, state_);
  if (ports_.runs != nullptr) ports_.runs->Ended(job);
  // One after the other and not one inside the other: chains of followers can be long.
  if (refusing_) return;
  refusing_ = true;
  while (!refused_.empty()) {
    const auto* next = state_.Find(refused_.front());
    refused_.pop_front();
    if (next != nullptr && !next->ending) StopJob(next->id, StopWhy::kDependency, "");
  }
  refusing_ = false;
}

void Controller::Arm(std::int64_t at_ms, JobNumber id) {
  const auto found = due_of_.find(id);
  if (found != due_of_.end()) {
    if (found->second <= at_ms) return;
    due_.erase({found->second, id});
  }
  due_of_[id] = at_ms;
  due_.emplace(at_ms, id);
}

void Controller::CheckDue() {
  while (!due_.empty() && due_.begin()->first <= NowMs()) {
    const JobNumber id = due_.begin()->second;
    due_.erase(due_.begin());
    due_of_.erase(id);
    CheckJob(id);
  }
  if (reservations_due_ms_ <= NowMs()) CheckReservations();
}

// One that is over goes; when one begins the scheduler has something to do.
void Controller::CheckReservations() {
  const auto now = NowMs();
  std::vector<const model::Reservation*> over;
  reservations_due_ms_ = INT64_MAX;
  for (const auto& [name, record] : state_.reservations()) {
    const auto& one = record.reservation;
    if (one.to_ms <= now) over.push_back(&one);
    const auto next = one.from_ms > now ? one.from_ms : one.to_ms;
    if (next > now) reservations_due_ms_ = std::min(reservations_due_ms_, next);
  }
  for (const auto* one : over) {
    Emit(model::ReservationRemoved{one->name, one->queue, "musterd", "over"});
  }
  dirty_ = true;
}

// Everything about the job that time alone may change; arms the next look.
void Controller::CheckJob(JobNumber id) {
  const auto* job = state_.Find(id);
  if (job == nullptr || job->ending) return;
  const auto now = NowMs();
  if (!job->Holds()) {
    if (job->not_before_ms > now) return Arm(job->not_before_ms, id);
    dirty_ |= job->not_before_ms > 0;  // the engine may have it now
    return;
  }
  const auto& limits = job->spec->limits;
  if (limits.time_ms > 0 && job->stopping == StopWhy::kNone) {
    const auto end = job->running_since_ms + limits.time_ms - job->ran_ms;
    if (end <= now) return StopJob(id, StopWhy::kTimeLimit, "");
    Arm(end, id);
  }
  for (std::uint32_t w = 0; w < job->workers.size(); ++w) {
    const auto& worker = job->workers[w];
    const LaunchKey key{id, w, worker.launch};
    const auto ordered = ordered_.find(key);
    if (worker.phase == WorkerPhase::kPlaced && ordered != ordered_.end()) {
      const auto end = ordered->second + settings_.start_timeout_ms;
      if (end <= now) return StopJob(id, StopWhy::kNeverStarted, "");
      Arm(end, id);
    }
    if (worker.phase == WorkerPhase::kLeaving) {
      const auto end = worker.leaving_ms + job->spec->checkpoint.grace_ms + settings_.stop_slack_ms;
      if (end <= now) {
        effects_.push_back({Effect::Kind::kKill, key, worker.node});
        Arm(now + settings_.stop_slack_ms, id);
      } else {
        Arm(end, id);
      }
    }
  }
  CheckIdle(*job);
}

// The shorter of what the job says and what its queue says for jobs of its kind; 0: for ever.
std::int64_t Controller::IdleLimitMs(const JobRecord& job) const {
  std::int64_t limit = job.spec->limits.idle_ms;
  for (const auto& queue : state_.queues()) {
    if (queue.name != job.spec->queue) continue;
    const auto rule = queue.kinds.find(job.spec->kind);
    if (rule != queue.kinds.end() && rule->second.idle_ms > 0) {
      limit = limit > 0 ? std::min(limit, rule->second.idle_ms) : rule->second.idle_ms;
    }
  }
  return limit;
}

void Controller::CheckIdle(const JobRecord& job) {
  const auto limit = IdleLimitMs(job);
  if (limit <= 0 || job.stopping != StopWhy::kNone || job.Count(WorkerPhase::kRunning) == 0) return;
  std::int64_t least = INT64_MAX;  // of the worker that was used last
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    const auto& worker = job.workers[w];
    if (worker.phase != WorkerPhase::kRunning) continue;
    pools::Pool* pool = PoolOf(worker.node);
    const auto idle = pool == nullptr ? -1 : pool->IdleMs({job.id, w, worker.launch});
    if (idle < 0) return Arm(NowMs() + kIdleUnknownMs, job.id);  // not known: not taken for idle
    least = std::min(least, idle);
  }
  const auto now = NowMs();
  const auto warned_from = limit - IdleWarningMs(limit);
  if (least < warned_from) {
    if (job.idle_until_ms != 0) Emit(model::JobIdle{job.id, least, 0});
    return Arm(now + std::max(kIdleLookMs, warned_from - least), job.id);
  }
  if (job.idle_until_ms == 0) {
    Emit(model::JobIdle{job.id, least, now + IdleWarningMs(limit)});
    for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
      const auto& worker = job.workers[w];
      if (worker.phase != WorkerPhase::kRunning) continue;
      effects_.push_back({Effect::Kind::kWarnIdle, {job.id, w, worker.launch}, worker.node});
    }
  }
  // Never without a warning first, whatever was known before it.
  const auto& after = *state_.Find(job.id);
  if (after.idle_until_ms <= now && least >= limit) {
    return StopJob(job.id, StopWhy::kIdleLimit, "");
  }
  Arm(now + std::clamp(after.idle_until_ms - now, kIdleLookMs, kIdleWarnedLookMs), job.id);
}

}  // namespace muster::control

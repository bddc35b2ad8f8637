// The round: what is new, the engine, the journal, the effects; and recovery.
#include "control/controller.h"

#include "control/idle.h"
#include "control/runs.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "base/wide.h"
#include "sim/replay.h"

namespace muster::control {

using pools::Found;
using pools::LaunchKey;
using state::JobRecord;
using state::WorkerPhase;

namespace {

constexpr std::int64_t kIdleCycleMs = 5'000;  // delays and graces run out without any event
constexpr std::int64_t kSearchAgainMs = 100;
constexpr std::int64_t kUseEveryMs = 60'000;
constexpr std::size_t kRuntimesRecalled = 2'000;  // ended jobs that are read again at the start

}  // namespace

Controller::Controller(Ports ports, Settings settings)
    : ports_(std::move(ports)), settings_(std::move(settings)), engine_(settings_.engine) {}

Controller::~Controller() = default;

// Wall time that never jumps: the monotonic clock from where the wall clock stood at the start, and
// never before the last thing that was written.
std::int64_t Controller::NowMs() {
  const std::int64_t now = ports_.clock.MonotonicNs() / 1'000'000 + wall_offset_ms_;
  last_ms_ = std::max(last_ms_, now);
  return last_ms_;
}

bool Controller::Own(state::Record& record) const {
  if (record.job == 0) return true;
  const auto* job = state_.Find(record.job);
  const auto* array = state_.FindArray(record.job);
  if (job == nullptr && array == nullptr) return false;
  record.user = job != nullptr ? job->user : array->user;
  record.queue = job != nullptr ? job->spec->queue : array->spec->queue;
  return true;
}

void Controller::Emit(model::EventBody body) {
  model::Event event{NowMs(), std::move(body)};
  state::Record record{state_.revision() + 1, event.at_ms, model::JobOf(event.body),
                       model::EncodeEvent(event.body)};
  // What ends may be forgotten at once: whose it is is known before or after.
  if (!Own(record)) {
    state_.Fold(event);
    Own(record);
  } else {
    state_.Fold(event);
  }
  batch_.push_back(std::move(record));
  if (std::holds_alternative<model::QueuesApplied>(event.body)) {
    members_ = MembersOf(state_.queues());
  }
  if (std::holds_alternative<model::ReservationSet>(event.body)) reservations_due_ms_ = 0;
  if (built_) engine_.Apply(event, state_);
  if (const auto* placed = std::get_if<model::WorkerPlaced>(&event.body)) {
    outlook_.Started(placed->job, event.at_ms);
  } else if (const auto* submitted = std::get_if<model::JobSubmitted>(&event.body)) {
    outlook_.Submitted(submitted->job + (submitted->spec->array ? 1 : 0));
  }
  // What the engine decided itself, and what changes nothing for it, is no reason to ask it again.
  const auto none = [&event]<typename... T>() {
    return (std::holds_alternative<T>(event.body) || ...);
  };
  const bool idle = none.operator()<model::CycleRan, model::WorkerPlaced, model::WorkerLeaving,
                                    model::WorkerStarted, model::UseNoted, model::UserSet,
                                    model::UserRemoved, model::TokenMade, model::TokenRevoked,
                                    model::RequestAnswered, model::JobResized>();
  dirty_ |= !idle;
}

void Controller::Audit(state::AuditRow row) {
  if (row.at_ms == 0) row.at_ms = NowMs();
  audits_.push_back(std::move(row));
}

Result<void> Controller::Recover() {
  batch_.clear();
  history_.clear();
  audits_.clear();
  std::erase_if(effects_, [](const auto& effect) { return effect.kind != Effect::Kind::kForget; });
  starting_.clear();
  built_ = false;
  due_.clear();
  due_of_.clear();
  reservations_due_ms_ = 0;
  ordered_.clear();
  unordered_.clear();
  refused_.clear();
  if (auto read = ReadJournal(); !read) return read;
  // A write that was said to have failed may be there all the same; then its ends can be forgotten.
  std::erase_if(effects_, [this](const Effect& effect) {
    const auto* job = state_.Find(effect.key.job);
    if (job == nullptr || effect.key.worker >= job->workers.size()) return false;
    const auto& worker = job->workers[effect.key.worker];
    return worker.launch == effect.key.launch && worker.Holds();
  });
  // A clock that was ahead and has been set back must not make time stand still.
  last_ms_ = std::max(ports_.clock.WallMs(), state_.last_ms());
  wall_offset_ms_ = last_ms_ - ports_.clock.MonotonicNs() / 1'000'000;
  Emit(model::DaemonStarted{settings_.version});
  if (state_.queues().empty()) {
    model::Queue everybody;
    everybody.name = "default";
    everybody.quota["gpus"] = model::kUnlimited;
    Emit(model::QueuesApplied{{everybody}, "musterd"});
  }
  if (auto joined = JoinNodes(); !joined) return joined;
  if (auto written = Commit(); !written) return written;
  // What the cluster is built from can be had again: it is where a replay begins.
  state::Snapshot snapshot{state_.revision(), state_.Encode()};
  if (auto saved = ports_.store.SaveSnapshot(snapshot, 0); !saved) return saved;
  snapshot_at_ = built_at_ = snapshot.revision;
  built_ms_ = NowMs();
  if (auto built = engine_.Build(state_, built_ms_); !built) return built;
  built_ = true;
  next_cycle_ms_ = 0;
  use_folded_ms_ = NowMs();
  AdoptAll();
  RecallRuntimes();
  return {};
}

// How long jobs ran before this start. Advice: what cannot be read is not known.
void Controller::RecallRuntimes() {
  if (runtimes_recalled_) return;
  runtimes_recalled_ = true;
  auto ended = ports_.store.History({.limit = kRuntimesRecalled});
  if (!ended) return;
  for (auto row = ended->rbegin(); row != ended->rend(); ++row) {
    if (const auto job = state::DecodeJobRecord(row->body); job) outlook_.Ended(*job, state_);
  }
}

Result<void> Controller::ReadJournal() {
  journal_read_ = false;
  state_ = state::State();  // nothing is shown that was not written
  state_.KeepOrder();
  members_ = MembersOf({});
  auto loaded = state::LoadState(ports_.store);
  if (!loaded) return tl::unexpected(loaded.error());
  const auto mark = ports_.mark == nullptr ? std::nullopt : ports_.mark->Read();
  if (mark && mark->revision > loaded->revision()) {
    return Fail(ErrorCode::kConflict,
                "the journal in " + ports_.store.Describe() + " ends at revision " +
                    std::to_string(loaded->revision()) + ", but revision " +
                    std::to_string(mark->revision) + " was written: its end is missing",
                "put back what is missing, or let `musterd repair`, with the same --state and "
                "--store, go on without it");
  }
  state_ = std::move(*loaded);
  state_.KeepOrder();
  members_ = MembersOf(state_.queues());
  journal_read_ = true;
  return {};
}

Result<void> Controller::JoinNodes() {
  pool_of_node_.clear();
  std::set<std::string> present;
  for (auto* pool : ports_.pools) {
    auto nodes = pool->Discover();
    if (!nodes) return tl::unexpected(nodes.error());
    for (auto& node : *nodes) {
      node.pool = pool->name();
      pool_of_node_[node.name] = pool->name();
      present.insert(node.name);
      const auto known = state_.nodes().find(node.name);
      if (known != state_.nodes().end()) {
        node.cordoned = known->second.node.cordoned;
        node.draining = known->second.node.draining;
        if (known->second.node == node && known->second.up) continue;
      }
      Emit(model::NodeJoined{node});
    }
  }
  std::vector<std::string> missing;
  for (const auto& [name, record] : state_.nodes()) {
    if (present.contains(name)) continue;
    pool_of_node_[name] = record.node.pool;  // it may come back
    if (record.up) missing.push_back(name);
  }
  for (const auto& name : missing) Emit(model::NodeWent{name, false, "no pool has it any more"});
  return {};
}

pools::Pool* Controller::PoolOf(const std::string& node) {
  const auto name = pool_of_node_.find(node);
  if (name == pool_of_node_.end()) return nullptr;
  for (auto* pool : ports_.pools) {
    if (pool->name() == name->second) return pool;
  }
  return nullptr;
}

// All launches are asked about before any is acted upon, because what became of one may start or
// stop the others of its gang; then comes what was reported meanwhile, and only then what time has
// done: a job that ended in time while nobody looked has ended in time.
void Controller::AdoptAll() {
  std::vector<std::pair<LaunchKey, Found>> held;
  std::vector<JobNumber> live;
  std::set<LaunchKey> known;
  for (const auto& [id, job] : state_.jobs()) {
    if (job.ending) continue;
    live.push_back(id);
    for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
      if (!job.workers[w].Holds()) continue;
      const LaunchKey key{id, w, job.workers[w].launch};
      Found found = Found::kDied;
      // Where its node has another name now, or none, it may still run: every pool is asked.
      pools::Pool* own = PoolOf(job.workers[w].node);
      for (auto* pool : ports_.pools) {
        if (found == Found::kDied && (own == nullptr || own == pool)) found = pool->Adopt(key);
      }
      if (found == Found::kAlive || found == Found::kEnded) ordered_.emplace(key, NowMs());
      held.emplace_back(key, found);
      known.insert(key);
    }
  }
  for (auto* pool : ports_.pools) {
    // What lives and is in no journal, after a repair: it must not go on.
    for (const auto& key : pool->Present()) {
      if (!known.contains(key)) pool->Kill(key);
    }
  }
  for (const auto& [key, found] : held) TakeUp(key, found);
  for (auto* pool : ports_.pools) {
    const auto events = pool->Poll();
    for (const auto& event : events) Handle(event);
  }
  for (const auto id : live) CheckJob(id);
}

void Controller::TakeUp(const LaunchKey& key, Found found) {
  const auto* job = state_.Find(key.job);
  if (job == nullptr || job->ending) return;
  const auto& record = job->workers[key.worker];
  if (record.launch != key.launch || !record.Holds()) return;
  const bool leaving = record.phase == WorkerPhase::kLeaving;
  switch (found) {
    case Found::kAlive:
      if (leaving) {
        const bool alone = record.why == StopWhy::kShrunk;
        effects_.push_back({alone ? Effect::Kind::kLeave : Effect::Kind::kStop, key, record.node});
      }
      if (!leaving && !engine_.HasPlace(key.job, key.worker) && job->stopping == StopWhy::kNone) {
        StopJob(key.job, StopWhy::kRequeued, "musterd: its place is gone");
      }
      return;
    case Found::kEnded:
      return;
    case Found::kNeverStarted:
      if (record.phase == WorkerPhase::kPlaced) return Start(key.job);
      break;
    case Found::kDied:
      break;
  }
  model::ExitFacts exit;
  exit.lost = !leaving;
  exit.stopped = leaving;
  exit.ended_ms = NowMs();
  HandleEnd(key, exit);
}

Result<void> Controller::Turn() {
  for (auto* pool : ports_.pools) {
    const auto events = pool->Poll();
    for (const auto& event : events) Handle(event);
  }
  CheckDue();
  if (dirty_ || (NowMs() >= next_cycle_ms_ && state_.live_jobs() > 0)) {
    if (auto ran = RunCycle(); !ran) return ran;
  }
  if (auto written = Commit(); !written) return written;
  if (ports_.runs != nullptr) ports_.runs->Keep(NowMs(), NowMs() - settings_.keep_history_ms);
  Release();
  // What was asked for is written; a snapshot that fails is tried again later.
  if (auto saved = MaybeSnapshot(); !saved) snapshot_at_ = state_.revision();
  return {};
}

Result<void> Controller::Commit() {
  if (batch_.empty() && history_.empty() && audits_.empty()) return {};
  const auto begun_ns = ports_.clock.MonotonicNs();
  auto written = ports_.store.Append(batch_, history_, audits_);
  vitals_.commits.Add(ports_.clock.MonotonicNs() - begun_ns);
  vitals_.writable = written.has_value();
  if (!written) {
    ++vitals_.commit_errors;
    return written;
  }
  if (ports_.mark != nullptr) ports_.mark->Write({state_.revision(), state_.next_job()});
  if (ports_.written) ports_.written(*this, batch_);
  batch_.clear();
  history_.clear();
  audits_.clear();
  return {};
}

// Everything that was decided is in the journal: now it may happen.
void Controller::Release() {
  const auto effects = std::exchange(effects_, {});
  starting_.clear();
  for (const auto& effect : effects) {
    pools::Pool* pool = PoolOf(effect.node);
    if (pool == nullptr) {
      // A node that is not here any more: whichever pool has the launch knows.
      for (auto* each : ports_.pools) {
        if (effect.kind == Effect::Kind::kStop) each->Stop(effect.key);
        if (effect.kind == Effect::Kind::kLeave) each->Leave(effect.key);
        if (effect.kind == Effect::Kind::kKill) each->Kill(effect.key);
        if (effect.kind == Effect::Kind::kForget) each->Forget(effect.key);
      }
      continue;
    }
    switch (effect.kind) {
      case Effect::Kind::kStart: {
        const auto* job = state_.Find(effect.key.job);
        if (job == nullptr || job->ending || effect.key.worker >= job->workers.size()) break;
        const auto& worker = job->workers[effect.key.worker];
        if (worker.launch != effect.key.launch || worker.phase != WorkerPhase::kPlaced) break;
        ordered_.emplace(effect.key, NowMs());
        Arm(NowMs() + settings_.start_timeout_ms, effect.key.job);
        pool->Start(LaunchOf(effect.key));
        break;
      }
      case Effect::Kind::kStop:
        pool->Stop(effect.key);
        break;
      case Effect::Kind::kLeave:
        pool->Leave(effect.key);
        break;
      case Effect::Kind::kResize:
        if (state_.Find(effect.key.job) == nullptr) break;
        pool->Resize(effect.key, MembersNow(effect.key.job));
        break;
      case Effect::Kind::kKill:
        pool->Kill(effect.key);
        break;
      case Effect::Kind::kForget:
        pool->Forget(effect.key);
        break;
      case Effect::Kind::kCheckpoint:
        if (const auto* job = state_.Find(effect.key.job)) {
          pool->AskCheckpoint(effect.key, job->spec->checkpoint.signal);
        }
        break;
      case Effect::Kind::kWarnIdle:
        if (const auto* job = state_.Find(effect.key.job); job != nullptr && !job->ending) {
          pool->Show(effect.key, IdleText(*job, NowMs()));
        }
        break;
    }
  }
}

pools::Launch Controller::LaunchOf(const LaunchKey& key) const {
  const JobRecord& job = *state_.Find(key.job);
  const auto roles = WorkerRoles(*job.spec);
  pools::Launch launch;
  launch.key = key;
  launch.spec = job.spec;
  launch.job_name = job.name();
  launch.user = job.user;
  launch.uid = job.uid;
  launch.gid = job.gid;
  launch.restarts = job.restarts;
  launch.generation = job.generation;
  launch.array = job.array;
  launch.array_index = job.array_index;
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    const auto& worker = job.workers[w];
    if (!worker.Holds() || worker.phase == WorkerPhase::kLeaving) continue;
    pools::GangMember member;
    member.worker = w;
    member.role = w < roles.size() ? roles[w] : 0;
    member.node = worker.node;
    member.devices = worker.devices;
    if (w == key.worker) {
      launch.role = member.role;
      launch.node = worker.node;
      launch.devices = worker.devices;
    }
    launch.members.push_back(std::move(member));
  }
  return launch;
}

Result<void> Controller::MaybeSnapshot() {
  if (state_.revision() - snapshot_at_ < settings_.snapshot_every) return {};
  state::Snapshot snapshot{state_.revision(), state_.Encode()};
  if (auto saved = ports_.store.SaveSnapshot(snapshot, built_at_); !saved) return saved;
  snapshot_at_ = snapshot.revision;
  const auto keep = std::min(state_.revision(), settings_.keep_events);
  return ports_.store.Compact(state_.revision() - keep, NowMs() - settings_.keep_history_ms);
}

Result<void> Controller::Finish() {
  if (ports_.runs != nullptr) ports_.runs->Keep(NowMs(), NowMs() - settings_.keep_history_ms, true);
  if (auto written = Commit(); !written) return written;
  if (state_.revision() == snapshot_at_) return {};
  return ports_.store.SaveSnapshot({state_.revision(), state_.Encode()}, built_at_);
}

Result<std::string> Controller::Export() {
  auto snapshot = ports_.store.LoadSnapshot(built_at_);
  if (!snapshot) return tl::unexpected(snapshot.error());
  sim::Recording recording;
  recording.state = std::move(snapshot->body);
  recording.built_ms = built_ms_;
  recording.topologies = settings_.engine.topologies;
  state::RecordQuery query;
  query.after = built_at_;
  query.limit = SIZE_MAX >> 1;
  auto read = ports_.store.Read(query, [&](const state::Record& record) -> Result<void> {
    recording.records.push_back({record.at_ms, record.body});
    return {};
  });
  if (!read) return tl::unexpected(read.error());
  return sim::EncodeRecording(recording);
}

std::int64_t Controller::DueInMs() {
  const auto now = NowMs();
  std::int64_t next = now + 1'000;
  if (!due_.empty()) next = std::min(next, due_.begin()->first);
  next = std::min(next, reservations_due_ms_);
  if (dirty_) next = now;
  if (state_.live_jobs() > 0) next = std::min(next, next_cycle_ms_);
  return std::max<std::int64_t>(0, next - now);
}

Result<void> Controller::RunCycle() {
  FoldUse();
  const auto now = NowMs();
  const auto begun_ns = ports_.clock.MonotonicNs();
  const auto plan = engine_.Cycle(state_, now);
  vitals_.cycles.Add(ports_.clock.MonotonicNs() - begun_ns);
  if (!plan) return tl::unexpected(plan.error());
  // A search that was cut short goes on; but not without pause when it finds nothing.
  dirty_ = !plan->complete && !plan->empty();
  next_cycle_ms_ = now + (plan->complete ? kIdleCycleMs : kSearchAgainMs);
  Emit(model::CycleRan{plan->complete, plan->steps, now});
  Carry(*plan);
  outlook_.Cycled(state_, engine_, now);
  return {};
}

// The engine's actions as events, and what follows from them.
void Controller::Carry(const model::Plan& plan) {
  std::set<JobNumber> touched, started, regroup, resized;
  for (const auto& action : plan.actions) {
    const JobNumber id = engine_.NumberOf(action.job);
    const JobRecord& job = *state_.Find(id);
    touched.insert(id);
    switch (action.kind) {
      case model::ActionKind::kStart:
      case model::ActionKind::kGrow: {
        if (job.Holds() && !started.contains(id)) {
          (NeedsRegroup(*job.spec) ? regroup : resized).insert(id);
        }
        const auto launch =
            action.worker < job.workers.size() ? job.workers[action.worker].launch + 1 : 1;
        Emit(model::WorkerPlaced{id, action.worker, launch, engine_.NodeName(action.node),
                                 action.devices, action.kind});
        started.insert(id);
        break;
      }
      case model::ActionKind::kShrink:
      case model::ActionKind::kMove:
      case model::ActionKind::kPause: {
        const auto why = action.kind == model::ActionKind::kShrink ? StopWhy::kShrunk
                         : action.kind == model::ActionKind::kMove ? StopWhy::kMoved
                                                                   : StopWhy::kPaused;
        const JobNumber cause = engine_.NumberOf(action.cause);
        Leave({id, action.worker, why, action.rule, cause == id ? 0 : cause, action.lost_gpu_ms},
              why == StopWhy::kShrunk ? Effect::Kind::kLeave : Effect::Kind::kStop);
        if (why != StopWhy::kPaused) (NeedsRegroup(*job.spec) ? regroup : resized).insert(id);
        break;
      }
    }
  }
  for (const JobNumber id : regroup) Regroup(id);
  for (const JobNumber id : started) Start(id);
  for (const JobNumber id : resized) TellSize(id);
  EndUnordered();
  for (const JobNumber id : touched) CheckJob(id);
}

// Starts every worker of the job that has a place and no process, unless old members of a gang that
// is formed anew have not gone yet.
void Controller::Start(JobNumber id) {
  const JobRecord& job = *state_.Find(id);
  if (job.stopping != StopWhy::kNone) return;
  if (NeedsRegroup(*job.spec) && job.Count(WorkerPhase::kLeaving) > 0) return;
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    const auto& worker = job.workers[w];
    const LaunchKey key{id, w, worker.launch};
    if (worker.phase != WorkerPhase::kPlaced || ordered_.contains(key)) continue;
    if (starting_.insert(key).second) effects_.push_back({Effect::Kind::kStart, key, worker.node});
  }
}

// Every member that has a process is stopped at a checkpoint; when the last has gone all start
// together.
void Controller::Regroup(JobNumber id) {
  const JobRecord& job = *state_.Find(id);
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    const auto phase = job.workers[w].phase;
    if (phase != WorkerPhase::kRunning && phase != WorkerPhase::kPlaced) continue;
    if (!ordered_.contains({id, w, job.workers[w].launch})) continue;
    Leave({id, w, StopWhy::kRegrouped, model::Rule::kFreeCapacity, 0, -1}, Effect::Kind::kStop);
  }
}

// Tells a worker to go. One that no pool was told of has no process that could end: it is gone with
// the next EndUnordered().
void Controller::Leave(const model::WorkerLeaving& order, Effect::Kind how) {
  const auto& worker = state_.Find(order.job)->workers[order.worker];
  const LaunchKey key{order.job, order.worker, worker.launch};
  const std::string node = worker.node;
  Emit(order);
  if (ordered_.contains(key)) {
    effects_.push_back({how, key, node});
    return;
  }
  starting_.erase(key);
  std::erase_if(effects_, [&](const Effect& effect) { return effect.key == key; });
  unordered_.push_back(key);
}

void Controller::EndUnordered() {
  const auto keys = std::exchange(unordered_, {});
  model::ExitFacts exit;
  exit.stopped = true;
  exit.ended_ms = NowMs();
  for (const auto& key : keys) HandleEnd(key, exit);
}

void Controller::FoldUse() {
  const auto now = NowMs();
  if (now - use_folded_ms_ < kUseEveryMs) return;
  const auto half_life = engine_.PolicyOf(state_).decay_half_life_ms;
  const auto passed = now - use_folded_ms_;
  use_folded_ms_ = now;
  if (half_life <= 0) return;
  auto use = state_.past_use();
  // Linear within a minute of a half-life of days: the error is far below a thousandth.
  // After a long sleep nothing is left, and not less.
  const auto part =
      std::min<Wide>(static_cast<Wide>(passed) * 693, static_cast<Wide>(half_life) * 1000);
  for (auto& [queue, gpu_ms] : use) {
    gpu_ms -= static_cast<std::int64_t>(static_cast<Wide>(gpu_ms) * part / 1000 / half_life);
  }
  const auto& queues = engine_.cluster().queues();
  for (engine::QueueId q = 1; q < queues.size(); ++q) {
    use[queues.spec(q).name] += queues[q].held[engine::kGpuDim] * passed / kMilli;
  }
  std::erase_if(use, [](const auto& entry) { return entry.second == 0; });
  if (use == state_.past_use()) return;
  Emit(model::UseNoted{use});
}

}  // namespace muster::control

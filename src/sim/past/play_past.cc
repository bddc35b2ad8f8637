#include "sim/past/play_past.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "base/wide.h"
#include "engine/runtime_history.h"
#include "sim/engine_view.h"
#include "sim/job_speed.h"

namespace muster::sim {

using model::StopWhy;
using state::JobRecord;
using state::WorkerPhase;

namespace {

constexpr std::int64_t kLookEveryMs = 60'000;  // use is noted, and who waits is looked at again
constexpr std::int64_t kGridMs = 5'000;  // what time alone has changed is noticed that late at most
constexpr std::int64_t kSearchAgainMs = 100;
constexpr int kMostCycles = 1'000;        // in one moment; then time goes on
constexpr int kLooksInVain = 60;          // with nothing to come, before who waits is given up
constexpr std::int64_t kTellEvery = 256;  // moments

// In the order in which things of one moment happen.
enum class Kind : std::uint8_t { kGone, kEnd, kSubmit, kCheckpoint, kLook };

struct Due {
  std::int64_t at_ms = 0;
  Kind kind = Kind::kLook;
  std::size_t job = 0;        // place in the past
  std::uint32_t worker = 0;   // kGone
  std::uint64_t version = 0;  // kEnd, kCheckpoint: of the job's pace; kGone: the launch
  friend auto operator<=>(const Due&, const Due&) = default;
};

class Player {
 public:
  Player(const Past& past, const engine::Policy& policy, const PlayProgress& progress)
      : past_(past),
        policy_(policy),
        progress_(progress),
        view_({policy, past.topologies}),
        tracks_(past.jobs.size()) {
    played_.jobs.resize(past.jobs.size());
  }

  Result<Played> Play();

 private:
  // What is known about a job beside its record.
  struct Track {
    std::int64_t done = 0;      // work, as of `since_ms`
    std::int64_t saved = 0;     // of it at the last checkpoint
    std::int64_t since_ms = 0;  // and from then on at this pace
    std::int64_t pace = 0;
    std::int64_t begun_ms = 0;   // it works since, without a break
    std::int64_t gpu_milli = 0;  // of the workers that make that pace
    std::uint64_t version = 0;
    bool wants = false;  // fewer workers than it could have
    bool lives = false;
    bool worked = false;
    std::optional<engine::JobSpeed> speed;
  };

  Result<void> Build();
  void Emit(model::EventBody body);
  std::int64_t NextMs() const;
  Result<bool> Step();
  void Happen(const Due& due);
  void Submit(std::size_t job);
  void SubmitOne(std::size_t first, std::size_t last);
  void Live(std::size_t job);
  void Gone(const Due& due);
  void End(std::size_t job);
  void Checkpoint(std::size_t job);
  Result<void> Cycle();
  void Carry(const model::Plan& plan);
  void Leave(std::size_t job, const model::Action& action, StopWhy why);
  void StartPlaced(std::size_t job);
  void Advance(std::size_t job);
  void Lose(std::size_t job);
  void Regroup(std::size_t job);
  void Retime(std::size_t job);
  void FoldUse();
  void Hold(std::int64_t milli);
  Result<void> Tell();

  // It has the places of its minimum.
  bool Satisfied(JobNumber id) const {
    const auto& cluster = view_.cluster();
    const auto known = cluster.FindJob(std::to_string(id));
    return known != engine::kNone && cluster.job(known).Satisfied();
  }
  std::size_t IndexOf(JobNumber id) const { return index_.at(id); }
  const JobRecord& Record(std::size_t job) const { return *state_.Find(past_.jobs[job].id); }

  const Past& past_;
  const engine::Policy policy_;
  const PlayProgress& progress_;
  state::State state_;
  EngineView view_;
  engine::RuntimeHistory runtimes_;
  std::vector<Track> tracks_;
  std::unordered_map<JobNumber, std::size_t> index_;
  std::multimap<std::string, std::int64_t> spared_;  // by queue: minimum run times
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::int64_t now_ms_ = 0;
  std::int64_t looked_ms_ = 0;
  std::int64_t use_ms_ = 0;
  std::int64_t held_milli_ = 0;
  std::size_t submitted_ = 0, live_ = 0, wanting_ = 0, ended_ = 0;
  int in_vain_ = 0;
  bool dirty_ = true;
  std::int64_t moments_ = 0;
  Played played_;
};

void Player::Emit(model::EventBody body) {
  const model::Event event{now_ms_, std::move(body)};
  state_.Fold(event);
  view_.Apply(event, state_);
}

Result<void> Player::Build() {
  now_ms_ = past_.from_ms;
  for (const auto& job : past_.jobs) now_ms_ = std::min(now_ms_, job.submitted_ms);
  looked_ms_ = use_ms_ = now_ms_;
  state_.Fold({now_ms_, model::QueuesApplied{past_.queues, ""}});
  for (const auto& node : past_.nodes) state_.Fold({now_ms_, model::NodeJoined{node}});
  for (const auto& queue : past_.queues) {
    for (const auto ms : {queue.reclaim_min_runtime_ms, queue.preempt_min_runtime_ms}) {
      if (ms > 0) spared_.emplace(queue.name, ms);
    }
  }
  index_.reserve(past_.jobs.size());
  for (std::size_t i = 0; i < past_.jobs.size(); ++i) index_.emplace(past_.jobs[i].id, i);
  return view_.Build(state_, now_ms_);
}

// The next submission is not in the queue: there is only ever one of them.
std::int64_t Player::NextMs() const {
  std::int64_t next = INT64_MAX;
  if (submitted_ < past_.jobs.size()) {
    next = std::max(now_ms_, past_.jobs[submitted_].submitted_ms);
  }
  if (!due_.empty()) next = std::min(next, due_.top().at_ms);
  if (live_ > 0 && in_vain_ < kLooksInVain) next = std::min(next, looked_ms_ + kLookEveryMs);
  return next;
}

Result<Played> Player::Play() {
  if (auto built = Build(); !built) return tl::unexpected(built.error());
  for (;;) {
    auto more = Step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
  }
  played_.stuck = std::ranges::count(played_.jobs, -1, &PlayedJob::ended_ms);
  return std::move(played_);
}

// One moment: all that falls on it, then the engine until it has nothing more to say.
Result<bool> Player::Step() {
  const auto next = NextMs();
  if (next == INT64_MAX) return false;
  now_ms_ = next;
  for (int round = 0;; ++round) {
    while (!due_.empty() && due_.top().at_ms <= now_ms_ && due_.top().kind < Kind::kSubmit) {
      const auto due = due_.top();
      due_.pop();
      Happen(due);
    }
    while (submitted_ < past_.jobs.size() && past_.jobs[submitted_].submitted_ms <= now_ms_) {
      Submit(submitted_);
    }
    while (!due_.empty() && due_.top().at_ms <= now_ms_) {
      const auto due = due_.top();
      due_.pop();
      Happen(due);
    }
    if (now_ms_ >= looked_ms_ + kLookEveryMs) {
      looked_ms_ = now_ms_;
      FoldUse();
      const bool nothing_to_come = due_.empty() && submitted_ == past_.jobs.size();
      in_vain_ = nothing_to_come ? in_vain_ + 1 : 0;
      dirty_ |= wanting_ > 0;
    }
    if (!dirty_) break;
    if (round == kMostCycles) {
      due_.push({now_ms_ + kSearchAgainMs, Kind::kLook});
      break;
    }
    if (auto ran = Cycle(); !ran) return tl::unexpected(ran.error());
  }
  if (auto told = Tell(); !told) return tl::unexpected(told.error());
  return true;
}

Result<void> Player::Tell() {
  if (!progress_ || ++moments_ % kTellEvery != 0) return {};
  return progress_(static_cast<double>(ended_) / static_cast<double>(past_.jobs.size()));
}

void Player::Happen(const Due& due) {
  switch (due.kind) {
    case Kind::kGone:
      return Gone(due);
    case Kind::kEnd:
      if (due.version == tracks_[due.job].version) End(due.job);
      return;
    case Kind::kCheckpoint:
      if (due.version == tracks_[due.job].version) Checkpoint(due.job);
      return;
    case Kind::kLook:
      dirty_ = true;
      return;
    case Kind::kSubmit:
      return;
  }
}

// A job, or all tasks of an array that are here, which come together.
void Player::Submit(std::size_t first) {
  const auto array = past_.jobs[first].array;
  std::size_t last = first;
  while (array != 0 && last + 1 < past_.jobs.size() && past_.jobs[last + 1].array == array) ++last;
  SubmitOne(first, last);
  submitted_ = last + 1;
  dirty_ = true;
}

void Player::SubmitOne(std::size_t first, std::size_t last) {
  const auto& job = past_.jobs[first];
  // What can never run here would only be looked at for ever.
  if (!view_.Admit(*job.spec, now_ms_)) {
    ended_ += last - first + 1;
    return;
  }
  std::vector<model::Follows> follows;
  follows.reserve(job.after.size());
  for (const auto id : job.after) {
    const auto* other = state_.Find(id);
    const auto* array = state_.FindArray(id);
    const bool lives = other != nullptr ? !other->ending : array != nullptr && !array->Ended();
    if (lives) follows.push_back({id, model::AfterCondition::kAny});
  }
  const auto id = job.array != 0 ? job.array : job.id;
  const auto guess = runtimes_.Guess(engine::KindOf(*job.spec, job.user));
  const auto expected = job.expected_ms.value_or(guess ? guess->likely_ms : 0);
  Emit(model::JobSubmitted{id, job.spec, job.user, 0, 0, std::move(follows), "", expected});
  for (std::size_t i = first; i <= last; ++i) Live(i);
  if (job.array == 0) return;
  // Tasks that had ended before are not to be done again.
  const auto tasks = static_cast<JobNumber>(state_.FindArray(id)->tasks);
  for (JobNumber task = id + 1; task <= id + tasks; ++task) {
    if (!index_.contains(task)) Emit(model::JobEnded{task, model::End::kCancelled});
  }
}

void Player::Live(std::size_t job) {
  auto& track = tracks_[job];
  track.lives = true;
  if (past_.jobs[job].speed) track.speed = SpeedOf(*past_.jobs[job].speed);
  ++live_;
  const auto delay = past_.jobs[job].spec->preemption_delay_ms;
  if (delay > 0) due_.push({now_ms_ + delay, Kind::kLook});
  Retime(job);
}

void Player::FoldUse() {
  const auto half_life = policy_.decay_half_life_ms;
  const auto passed = now_ms_ - std::exchange(use_ms_, now_ms_);
  if (half_life <= 0) return;
  auto use = state_.past_use();
  for (auto& [queue, gpu_ms] : use) {
    const auto gone = static_cast<Wide>(gpu_ms) * passed * 693 / 1000 / half_life;
    gpu_ms -= static_cast<std::int64_t>(std::min<Wide>(gone, gpu_ms));
  }
  const auto& queues = view_.cluster().queues();
  for (engine::QueueId q = 1; q < queues.size(); ++q) {
    use[queues.spec(q).name] += queues[q].held[engine::kGpuDim] * passed / kMilli;
  }
  std::erase_if(use, [](const auto& entry) { return entry.second == 0; });
  if (use != state_.past_use()) Emit(model::UseNoted{use});
}

Result<void> Player::Cycle() {
  if (now_ms_ - use_ms_ >= kLookEveryMs) FoldUse();
  const auto plan = view_.Cycle(state_, now_ms_);
  if (!plan) return tl::unexpected(plan.error());
  ++played_.cycles;
  dirty_ = !plan->complete && !plan->empty();
  if (!plan->complete && !dirty_) due_.push({now_ms_ + kSearchAgainMs, Kind::kLook});
  if (!plan->empty()) in_vain_ = 0;
  Emit(model::CycleRan{plan->complete, plan->steps, now_ms_});
  Carry(*plan);
  return {};
}

void Player::Carry(const model::Plan& plan) {
  std::set<std::size_t> touched, started, resized, moved;
  for (const auto& action : plan.actions) {
    const auto job = IndexOf(view_.NumberOf(action.job));
    const auto& record = Record(job);
    touched.insert(job);
    switch (action.kind) {
      case model::ActionKind::kStart:
      case model::ActionKind::kGrow: {
        if (record.Holds() && !started.contains(job)) resized.insert(job);
        const auto launch =
            action.worker < record.workers.size() ? record.workers[action.worker].launch + 1 : 1;
        Emit(model::WorkerPlaced{record.id, action.worker, launch, view_.NodeName(action.node),
                                 action.devices, action.kind});
        Hold(HeldMilli(past_.jobs[job], action.worker, action.devices));
        started.insert(job);
        break;
      }
      case model::ActionKind::kShrink:
        Leave(job, action, StopWhy::kShrunk);
        resized.insert(job);
        break;
      case model::ActionKind::kMove:
        Leave(job, action, StopWhy::kMoved);
        moved.insert(job);
        break;
      case model::ActionKind::kPause:
        Leave(job, action, StopWhy::kPaused);
        break;
    }
  }
  for (const auto job : resized) ++played_.jobs[job].resizes;
  for (const auto job : moved) ++played_.jobs[job].moves;
  resized.merge(moved);
  for (const auto job : resized) Regroup(job);
  for (const auto job : started) StartPlaced(job);
  for (const auto job : touched) Retime(job);
}

void Player::Leave(std::size_t job, const model::Action& action, StopWhy why) {
  const auto& past = past_.jobs[job];
  const auto& worker = Record(job).workers[action.worker];
  const auto launch = worker.launch;
  const bool runs = worker.phase == WorkerPhase::kRunning;
  const auto cause = view_.NumberOf(action.cause);
  Emit(model::WorkerLeaving{past.id, action.worker, why, action.rule, cause == past.id ? 0 : cause,
                            action.lost_gpu_ms});
  played_.jobs[job].pauses = static_cast<std::int32_t>(Record(job).preempted);
  const bool writes = past.checkpoints && (why != StopWhy::kShrunk || past.regroups);
  const auto grace = runs && writes ? past.spec->checkpoint.grace_ms : 0;
  due_.push({now_ms_ + grace, Kind::kGone, job, action.worker, launch});
}

void Player::Gone(const Due& due) {
  const auto* record = state_.Find(past_.jobs[due.job].id);
  if (record == nullptr || record->ending) return;
  const auto& worker = record->workers[due.worker];
  if (worker.phase != WorkerPhase::kLeaving || worker.launch != due.version) return;
  Hold(-HeldMilli(past_.jobs[due.job], due.worker, worker.devices));
  model::ExitFacts exit;
  exit.stopped = true;
  exit.ended_ms = now_ms_;
  Emit(model::WorkerEnded{record->id, due.worker, worker.launch, exit});
  dirty_ = true;
  StartPlaced(due.job);
  Retime(due.job);
  const auto& grace = record->spec->stale_grace_ms;
  if (record->Holds() && grace) due_.push({now_ms_ + *grace + kGridMs, Kind::kLook});
}

// Every worker with a place starts, unless others of a gang that is formed anew have not gone yet.
void Player::StartPlaced(std::size_t job) {
  const auto& record = Record(job);
  if (past_.jobs[job].regroups && record.Count(WorkerPhase::kLeaving) > 0) return;
  const bool first = record.started_ms == 0;
  bool any = false;
  for (std::uint32_t w = 0; w < record.workers.size(); ++w) {
    if (record.workers[w].phase != WorkerPhase::kPlaced) continue;
    Emit(model::WorkerStarted{record.id, w, record.workers[w].launch, 0, now_ms_, ""});
    any = true;
  }
  if (!any) return;
  if (played_.jobs[job].started_ms < 0) played_.jobs[job].started_ms = now_ms_;
  const auto spared = spared_.equal_range(record.spec->queue);
  for (auto each = spared.first; each != spared.second; ++each) {
    due_.push({now_ms_ + each->second, Kind::kLook});
  }
  const auto& speed = past_.jobs[job].speed;
  if (!first || speed == nullptr) return;
  for (const auto& told : speed->told) {
    if (told != speed->latest) Emit(model::SpeedReported{record.id, told});
  }
  Emit(model::SpeedReported{record.id, speed->latest});
  dirty_ = true;
  due_.push({now_ms_ + policy_.resize_every_ms, Kind::kLook});
}

// Brings what was done up to now, and what of it is safe.
void Player::Advance(std::size_t job) {
  auto& track = tracks_[job];
  const auto from = std::exchange(track.since_ms, now_ms_);
  if (track.pace == 0) return;
  // Work begins some time after the start, where that costs something.
  const auto begun = std::max(from, track.begun_ms);
  if (now_ms_ <= begun) return;
  const auto every = past_.jobs[job].spec->checkpoint.every_ms;
  if (every > 0) {
    const auto last = track.begun_ms + (now_ms_ - track.begun_ms) / every * every;
    if (last > begun) track.saved = track.done + track.pace * (last - begun);
  }
  track.done += track.pace * (now_ms_ - begun);
}

// It stops, or is formed anew: what is not in a checkpoint has to be done again.
void Player::Lose(std::size_t job) {
  Advance(job);
  auto& track = tracks_[job];
  const auto& past = past_.jobs[job];
  if (!past.checkpoints) track.saved = 0;
  if (past.checkpoints && past.spec->checkpoint.every_ms <= 0) track.saved = track.done;
  const auto lost = std::exchange(track.done, track.saved) - track.saved;
  if (track.pace > 0) {
    played_.jobs[job].lost_gpu_ms +=
        static_cast<std::int64_t>(static_cast<Wide>(lost) * track.gpu_milli / track.pace / kMilli);
  }
}

void Player::Regroup(std::size_t job) {
  const auto& past = past_.jobs[job];
  auto& track = tracks_[job];
  if (track.pace == 0) return;
  if (!past.regroups) {
    Advance(job);
    const bool told = past.pause_ms >= 0;
    const auto cost = told ? past.pause_ms : past.spec->checkpoint.restart_cost_ms;
    track.begun_ms = std::max(track.begun_ms, now_ms_ + cost);
    const auto workers = static_cast<std::int64_t>(Record(job).Count(WorkerPhase::kPlaced) +
                                                   Record(job).Count(WorkerPhase::kRunning));
    if (told) Emit(model::JobResized{past.id, now_ms_, workers, cost});
    return;
  }
  Lose(job);
  track.begun_ms = now_ms_ + past.spec->checkpoint.restart_cost_ms +
                   (past.checkpoints ? past.spec->checkpoint.grace_ms : 0);
}

// Whether it works and how fast, after something about its workers has changed; and when it ends.
void Player::Retime(std::size_t job) {
  auto& track = tracks_[job];
  if (!track.lives) return;
  const auto& past = past_.jobs[job];
  const auto& record = Record(job);
  std::int64_t running = 0, held = 0;
  std::set<std::string_view> nodes;
  int gpus = 0;
  for (std::uint32_t w = 0; w < record.workers.size(); ++w) {
    const auto& worker = record.workers[w];
    if (worker.phase != WorkerPhase::kRunning) continue;
    ++running;
    held += HeldMilli(past, w, worker.devices);
    gpus += std::popcount(worker.devices);
    nodes.insert(worker.node);
  }
  const bool wants = running < static_cast<std::int64_t>(WorkersOf(*past.spec));
  if (wants && !track.wants) ++wanting_;
  if (!wants && track.wants) --wanting_;
  track.wants = wants;
  const bool works = running > 0 && Satisfied(past.id) && record.Count(WorkerPhase::kPlaced) == 0;
  const WorkPlace place{running, static_cast<int>(nodes.size()), gpus, state_.GpuTypeOf(record)};
  const auto pace = works ? PaceOf(track.speed ? &*track.speed : nullptr, place) : 0;
  if (works && track.pace == 0) {
    Advance(job);
    const bool again = std::exchange(track.worked, true);
    track.begun_ms = now_ms_ + (again ? past.spec->checkpoint.restart_cost_ms : 0);
  } else if (!works && track.pace > 0) {
    Lose(job);
  } else {
    Advance(job);
  }
  track.pace = pace;
  track.gpu_milli = held;
  ++track.version;
  if (!works) return;
  const auto begins = std::max(now_ms_, track.begun_ms);
  const auto left = std::max<std::int64_t>(0, past.work - track.done);
  due_.push({begins + (left + pace - 1) / pace, Kind::kEnd, job, 0, track.version});
  const auto every = past.spec->checkpoint.every_ms;
  if (every > 0 && past.tells) {
    const auto passed = std::max<std::int64_t>(0, now_ms_ - track.begun_ms);
    due_.push(
        {track.begun_ms + (passed / every + 1) * every, Kind::kCheckpoint, job, 0, track.version});
  }
}

void Player::Checkpoint(std::size_t job) {
  const auto& past = past_.jobs[job];
  Emit(model::CheckpointTaken{past.id, now_ms_, -1});
  dirty_ = true;
  due_.push(
      {now_ms_ + past.spec->checkpoint.every_ms, Kind::kCheckpoint, job, 0, tracks_[job].version});
}

void Player::End(std::size_t job) {
  auto& track = tracks_[job];
  const auto& past = past_.jobs[job];
  const auto id = past.id;
  const auto& record = Record(job);
  model::ExitFacts exit;
  exit.exit_code = 0;
  exit.ended_ms = now_ms_;
  for (std::uint32_t w = 0; w < record.workers.size(); ++w) {
    const auto& worker = record.workers[w];
    if (!worker.Holds()) continue;
    Hold(-HeldMilli(past, w, worker.devices));
    exit.stopped = worker.phase == WorkerPhase::kLeaving;
    Emit(model::WorkerEnded{id, w, worker.launch, exit});
  }
  exit.stopped = false;
  runtimes_.Add(engine::KindOf(*past.spec, past.user), Record(job).ran_ms);
  Emit(model::JobEnded{id, model::End::kSucceeded, StopWhy::kNone, 0, exit});
  track.pace = 0;
  track.lives = false;
  if (std::exchange(track.wants, false)) --wanting_;
  ++track.version;
  --live_;
  ++ended_;
  dirty_ = true;
  played_.jobs[job].ended_ms = now_ms_;
  played_.last_ms = now_ms_;
}

void Player::Hold(std::int64_t milli) {
  held_milli_ += milli;
  if (!played_.held.empty() && played_.held.back().at_ms == now_ms_) {
    played_.held.back().gpu_milli = held_milli_;
  } else {
    played_.held.push_back({now_ms_, held_milli_});
  }
}

}  // namespace

Result<Played> PlayPast(const Past& past, const engine::Policy& policy,
                        const PlayProgress& progress) {
  return Player(past, policy, progress).Play();
}

std::int64_t HeldBetween(const std::vector<HeldStep>& held, std::int64_t from_ms,
                         std::int64_t to_ms) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const auto begin = std::max(from_ms, held[i].at_ms);
    const auto end = std::min(to_ms, i + 1 < held.size() ? held[i + 1].at_ms : to_ms);
    if (end > begin) sum += (end - begin) * held[i].gpu_milli / kMilli;
  }
  return sum;
}

}  // namespace muster::sim

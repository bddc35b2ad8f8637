// Plays a script on the engine.
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "engine/cluster.h"
#include "engine/cycle.h"
#include "model/job.h"
#include "sim/story.h"

namespace muster::sim {

using engine::JobId;
using engine::WorkerRef;
using model::ActionKind;

namespace {

constexpr std::int64_t kGi = 1LL << 30;
constexpr std::int64_t kNever = model::kUnlimited;
constexpr int kMostEvents = 100'000;  // a story that goes on longer than that is a mistake in it

model::Node MakeNode(int gpus) {
  model::Node node;
  node.name = "box";
  model::Gpu gpu;
  gpu.memory_bytes = 80 * kGi;
  gpu.nvlink_island = 0;
  node.gpus.assign(static_cast<std::size_t>(gpus), gpu);
  node.cpu_milli = 16 * kMilli * gpus;
  node.memory_bytes = 128 * kGi * gpus;
  return node;
}

model::Job MakeJob(const ScriptJob& from, const Script& script) {
  model::Job job;
  job.name = from.name;
  job.queue = script.researchers[from.owner].name;
  job.kind = from.interactive ? model::JobKind::kBuild : model::JobKind::kTrain;
  job.preemptible = !from.interactive;
  job.priority = from.priority;
  job.checkpoint.every_ms = script.checkpoint_every_ms;
  job.checkpoint.restart_cost_ms = script.restart_ms;
  model::Group group;
  group.minimum = from.min_workers;
  job.groups.push_back(group);
  model::Role role;
  role.name = "worker";
  role.count = from.max_workers;
  role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
  role.request.cpu_milli = 8 * kMilli;
  role.request.memory_bytes = 64 * kGi;
  job.roles.push_back(role);
  return job;
}

// Plays one script on one cluster.
class Player {
 public:
  Player(const Script& script, Sharing sharing)
      : script_(script), tracks_(script.jobs.size()), day_end_(script.day_ms) {
    run_.sharing = sharing;
    run_.records.resize(script.jobs.size());
  }

  Result<StoryRun> Play();

 private:
  // What is known about a job beside what the cluster knows.
  struct Track {
    JobId id = engine::kNone;
    bool present = false;
    std::int64_t progress_gpu_ms = 0;
    std::int64_t saved_gpu_ms = 0;   // at the last checkpoint
    std::int64_t saved_at_ms = 0;    // when that was taken
    std::int64_t ready_ms = 0;       // makes progress from then on
    std::int64_t idle_since_ms = 0;  // holds nothing since
    int workers = 0;
  };
  struct Leaving {
    WorkerRef worker;
    std::int64_t gone_ms;
  };

  Result<void> Build();
  std::int64_t NextEvent() const;
  std::int64_t EndOf(std::size_t job) const;
  void AdvanceTo(std::int64_t at_ms);
  void Progress(std::size_t job, std::int64_t to_ms);
  void LetLeave();
  void LetEnd();
  Result<void> LetArrive();
  void Cycle();
  void Apply(const model::Action& action);
  void Note(std::size_t job, const std::vector<model::Action>& actions);
  void CloseStay(std::size_t job, std::uint32_t worker);
  int HeldBy(std::size_t owner) const;
  void Measure();

  const Script& script_;
  std::vector<Track> tracks_;
  std::int64_t day_end_;
  std::int64_t now_ms_ = 0;
  std::size_t arrived_ = 0;
  std::vector<std::size_t> by_id_;  // by the cluster's id: index of the job in the script
  std::vector<Leaving> leaving_;
  std::unique_ptr<engine::Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  StoryRun run_;
};

Result<void> Player::Build() {
  engine::Setup setup;
  for (const auto& researcher : script_.researchers) {
    model::Queue queue;
    queue.name = researcher.name;
    queue.created_order = static_cast<std::int64_t>(setup.queues.size());
    queue.quota["gpus"] = QuotaOf(researcher, run_.sharing) * kMilli;
    if (run_.sharing == Sharing::kFixed) queue.limit["gpus"] = queue.quota["gpus"];
    setup.queues.push_back(std::move(queue));
  }
  auto cluster = engine::Cluster::Make(std::move(setup));
  if (!cluster) return tl::unexpected(cluster.error());
  cluster_ = std::move(*cluster);
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
  const auto node = cluster_->AddNode(MakeNode(script_.gpus));
  if (!node) return tl::unexpected(node.error());
  return {};
}

Result<StoryRun> Player::Play() {
  if (auto built = Build(); !built) return tl::unexpected(built.error());
  for (int events = 0; events < kMostEvents; ++events) {
    const auto next = NextEvent();
    if (next == kNever) {
      const bool done = std::none_of(tracks_.begin(), tracks_.end(),
                                     [](const Track& track) { return track.present; });
      if (!done) return Fail(ErrorCode::kInvalid, "a job of the story can never start");
      Measure();
      return std::move(run_);
    }
    AdvanceTo(next);
    LetLeave();
    LetEnd();
    if (auto added = LetArrive(); !added) return tl::unexpected(added.error());
    Cycle();
  }
  return Fail(ErrorCode::kInternal, "the story does not come to an end");
}

std::int64_t Player::EndOf(std::size_t job) const {
  const Track& track = tracks_[job];
  if (!track.present || track.workers == 0) return kNever;
  const auto left = script_.jobs[job].work_gpu_ms - track.progress_gpu_ms;
  return std::max(now_ms_, track.ready_ms) + (left + track.workers - 1) / track.workers;
}

std::int64_t Player::NextEvent() const {
  std::int64_t next = kNever;
  if (arrived_ < script_.jobs.size()) next = script_.jobs[arrived_].arrives_ms;
  for (const auto& leaving : leaving_) next = std::min(next, leaving.gone_ms);
  for (std::size_t job = 0; job < tracks_.size(); ++job) next = std::min(next, EndOf(job));
  return next;
}

// Work done until then, and the checkpoints taken on the way.
void Player::Progress(std::size_t job, std::int64_t to_ms) {
  Track& track = tracks_[job];
  const auto begin = std::max(now_ms_, track.ready_ms);
  if (!track.present || track.workers == 0 || to_ms <= begin) return;
  const auto passed = (to_ms - track.saved_at_ms) / script_.checkpoint_every_ms;
  if (passed > 0) {
    track.saved_at_ms += passed * script_.checkpoint_every_ms;
    track.saved_gpu_ms = track.progress_gpu_ms +
                         track.workers * std::max<std::int64_t>(0, track.saved_at_ms - begin);
    cluster_->ReportCheckpoint(track.id, track.saved_at_ms);
  }
  const auto left = script_.jobs[job].work_gpu_ms - track.progress_gpu_ms;
  const auto in_day = std::min(to_ms, day_end_) - std::min(begin, day_end_);
  run_.measures.useful_gpu_ms += std::min(left, track.workers * in_day);
  track.progress_gpu_ms += std::min(left, track.workers * (to_ms - begin));
}

void Player::AdvanceTo(std::int64_t at_ms) {
  const auto in_day = std::min(at_ms, day_end_) - std::min(now_ms_, day_end_);
  std::int64_t held = static_cast<std::int64_t>(leaving_.size()), waiting = 0;
  for (const auto& track : tracks_) {
    held += track.workers;
    if (track.present) waiting += cluster_->job(track.id).pending;
  }
  run_.measures.held_gpu_ms += held * in_day;
  run_.measures.idle_wanted_gpu_ms += std::min(script_.gpus - held, waiting) * in_day;
  for (std::size_t job = 0; job < tracks_.size(); ++job) Progress(job, at_ms);
  now_ms_ = at_ms;
}

void Player::CloseStay(std::size_t job, std::uint32_t worker) {
  const auto open = std::find_if(run_.stays.rbegin(), run_.stays.rend(), [&](const Stay& stay) {
    return stay.job == job && stay.worker == worker && stay.to_ms == kNever;
  });
  MUSTER_CHECK(open != run_.stays.rend(), "a worker that leaves was somewhere");
  open->to_ms = now_ms_;
}

void Player::LetLeave() {
  for (const auto& leaving : leaving_) {
    if (leaving.gone_ms > now_ms_) continue;
    CloseStay(by_id_[leaving.worker.job], leaving.worker.index);
    cluster_->ReportLeft(leaving.worker);
  }
  std::erase_if(leaving_, [&](const Leaving& leaving) { return leaving.gone_ms <= now_ms_; });
}

void Player::LetEnd() {
  for (std::size_t job = 0; job < tracks_.size(); ++job) {
    Track& track = tracks_[job];
    if (!track.present || track.progress_gpu_ms < script_.jobs[job].work_gpu_ms) continue;
    std::erase_if(leaving_, [&](const Leaving& leaving) { return leaving.worker.job == track.id; });
    for (auto& stay : run_.stays) {
      if (stay.job == job && stay.to_ms == kNever) stay.to_ms = now_ms_;
    }
    Happening ends{.at_ms = now_ms_, .turn = Turn::kEnd, .job = job, .from = track.workers};
    run_.happenings.push_back(ends);
    run_.records[job].ended_ms = now_ms_;
    cluster_->RemoveJob(track.id);
    track.present = false;
    track.workers = 0;
  }
}

Result<void> Player::LetArrive() {
  for (; arrived_ < script_.jobs.size(); ++arrived_) {
    const ScriptJob& job = script_.jobs[arrived_];
    if (job.arrives_ms > now_ms_) break;
    const auto id = cluster_->AddJob(MakeJob(job, script_), now_ms_);
    if (!id) return tl::unexpected(id.error());
    if (by_id_.size() <= *id) by_id_.resize(*id + 1, kNobody);
    by_id_[*id] = arrived_;
    tracks_[arrived_].id = *id;
    tracks_[arrived_].present = true;
    tracks_[arrived_].idle_since_ms = now_ms_;
    const int quota = QuotaOf(script_.researchers[job.owner], run_.sharing);
    // Jobs of the same minute that came before it count as if they had started.
    int minimum = job.min_workers;
    for (std::size_t other = 0; other < arrived_; ++other) {
      const bool theirs = script_.jobs[other].owner == job.owner && tracks_[other].present;
      if (theirs) minimum += std::max(tracks_[other].workers, script_.jobs[other].min_workers);
    }
    run_.records[arrived_].entitled = minimum <= quota;
    run_.happenings.push_back({.at_ms = now_ms_, .turn = Turn::kArrive, .job = arrived_});
  }
  return {};
}

int Player::HeldBy(std::size_t owner) const {
  int held = 0;
  for (std::size_t job = 0; job < tracks_.size(); ++job) {
    if (script_.jobs[job].owner == owner) held += tracks_[job].workers;
  }
  return held;
}

void Player::Cycle() {
  const model::Plan plan = scheduler_->Cycle(now_ms_);
  for (const auto& action : plan.actions) Apply(action);
  // Who gives comes before who gets, so that the story reads from cause to effect.
  for (const bool gives : {true, false}) {
    for (std::size_t job = 0; job < tracks_.size(); ++job) {
      if (!tracks_[job].present) continue;
      const auto active = static_cast<int>(cluster_->job(tracks_[job].id).active);
      if (active == tracks_[job].workers || (active < tracks_[job].workers) != gives) continue;
      Note(job, plan.actions);
    }
  }
}

void Player::Apply(const model::Action& action) {
  const std::size_t job = by_id_[action.job];
  switch (action.kind) {
    case ActionKind::kStart:
    case ActionKind::kGrow:
      run_.stays.push_back({std::countr_zero(action.devices), job, action.worker, now_ms_, kNever});
      break;
    case ActionKind::kShrink:
      leaving_.push_back({{action.job, action.worker}, now_ms_ + script_.shrink_ms});
      break;
    case ActionKind::kMove:
    case ActionKind::kPause:
      leaving_.push_back({{action.job, action.worker}, now_ms_ + script_.pause_ms});
      break;
  }
}

// Brings the job's track up to what the cycle decided and tells it.
void Player::Note(std::size_t job, const std::vector<model::Action>& actions) {
  Track& track = tracks_[job];
  JobRecord& record = run_.records[job];
  Happening out{.at_ms = now_ms_, .job = job, .from = track.workers};
  out.to = static_cast<int>(cluster_->job(track.id).active);
  for (const auto& action : actions) {
    if (action.job != track.id) continue;
    out.rule = action.rule;
    if (action.cause != track.id) out.causes.push_back(by_id_[action.cause]);
  }
  std::sort(out.causes.begin(), out.causes.end());
  out.causes.erase(std::unique(out.causes.begin(), out.causes.end()), out.causes.end());
  out.held = HeldBy(script_.jobs[job].owner);
  const auto queue = cluster_->job(track.id).queue;
  out.share_milli = cluster_->queues()[queue].share[engine::kGpuDim];
  if (out.from == 0) {
    const bool again = record.started_ms >= 0;
    out.turn = again ? Turn::kResume : Turn::kStart;
    out.waited_ms = now_ms_ - track.idle_since_ms;
    record.waited_ms += out.waited_ms;
    if (!again) record.started_ms = now_ms_;
    track.ready_ms = now_ms_ + (again ? script_.restart_ms : 0);
    track.saved_at_ms = track.ready_ms;
    cluster_->ReportCheckpoint(track.id, track.saved_at_ms);
  } else if (out.to == 0) {
    out.turn = Turn::kPause;
    out.lost_gpu_ms = track.progress_gpu_ms - track.saved_gpu_ms;
    run_.measures.useful_gpu_ms -= now_ms_ <= day_end_ ? out.lost_gpu_ms : 0;
    track.progress_gpu_ms = track.saved_gpu_ms;
    track.idle_since_ms = now_ms_;
    record.lost_gpu_ms += out.lost_gpu_ms;
    ++record.pauses;
  } else {
    out.turn = out.to > out.from ? Turn::kGrow : Turn::kShrink;
    ++record.resizes;
  }
  track.workers = out.to;
  run_.happenings.push_back(std::move(out));
}

void Player::Measure() {
  Measures& all = run_.measures;
  std::int64_t waited = 0, took = 0;
  for (std::size_t job = 0; job < tracks_.size(); ++job) {
    const JobRecord& record = run_.records[job];
    const auto arrived = script_.jobs[job].arrives_ms;
    waited += record.waited_ms;
    took += record.ended_ms - arrived;
    all.all_done_ms = std::max(all.all_done_ms, record.ended_ms);
    all.lost_gpu_ms += record.lost_gpu_ms;
    all.pauses += record.pauses;
    all.ended_in_day += record.ended_ms <= day_end_ ? 1 : 0;
    if (record.entitled) {
      all.longest_entitled_ms = std::max(all.longest_entitled_ms, record.started_ms - arrived);
    }
  }
  const auto jobs = std::max<std::int64_t>(1, static_cast<std::int64_t>(tracks_.size()));
  all.mean_wait_ms = waited / jobs;
  all.mean_completion_ms = took / jobs;
}

}  // namespace

Result<StoryRun> PlayStory(const Script& script, Sharing sharing) {
  return Player(script, sharing).Play();
}

}  // namespace muster::sim

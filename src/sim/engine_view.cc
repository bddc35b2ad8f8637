#include "sim/engine_view.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "engine/policy_settings.h"
#include "sim/job_speed.h"

namespace muster::sim {

using engine::WorkerState;
using model::StopWhy;
using state::JobRecord;
using state::State;
using state::WorkerPhase;

namespace {

constexpr double kMicro = 1e-6;

}  // namespace

engine::JobSpeed SpeedOf(const state::SpeedRecord& record) {
  std::vector<engine::TypedSample> samples;
  samples.reserve(record.told.size());
  int most_gpus = 0;
  for (const auto& told : record.told) {
    samples.push_back(
        {told.gpu_type,
         {told.nodes, told.gpus, told.samples, static_cast<double>(told.compute_us) * kMicro,
          static_cast<double>(told.step_us) * kMicro}});
    most_gpus = std::max(most_gpus, told.gpus);
  }
  const auto& now = record.latest;
  engine::JobSpeed::Models models;
  for (const auto& [type, steps] : engine::FitByType(samples)) {
    models[type] = {steps,
                    1,
                    static_cast<double>(now.noise_milli) / kMilli,
                    {now.first_batch, now.most_batch, now.least_samples, now.most_samples}};
  }
  return {std::move(models), most_gpus};
}

namespace {

// From its start on: what is known of jobs like it, at most its limit. What it did before it was
// paused is done where it can go on from a checkpoint.
std::int64_t ExpectedMs(const JobRecord& job) {
  std::int64_t takes = job.expected_ms > 0 ? job.expected_ms : -1;
  const bool goes_on = job.checkpoint_ms >= 0 || !job.spec->checkpoint.dir.empty();
  if (takes > 0 && goes_on) takes = std::max<std::int64_t>(0, takes - job.ran_ms);
  const auto limit_ms = job.spec->limits.time_ms;
  if (limit_ms == 0) return takes;
  const auto left = std::max<std::int64_t>(0, limit_ms - job.ran_ms);
  return takes < 0 ? left : std::min(takes, left);
}

}  // namespace

Bar BarOf(const JobRecord& job, std::int64_t now_ms) {
  if (job.stopping != StopWhy::kNone) return Bar::kStopping;
  if (job.suspended) return Bar::kSuspended;
  if (job.held) return Bar::kHeld;
  if (!job.follows.empty()) return Bar::kFollows;
  if (job.not_before_ms > now_ms) return Bar::kBackOff;
  return Bar::kNone;
}

bool KeepsPlace(const State& state, const JobRecord& job, std::uint32_t index) {
  const auto& worker = job.workers[index];
  if (worker.phase != WorkerPhase::kWaiting || worker.why != StopWhy::kRegrouped) return false;
  const auto node = state.nodes().find(worker.node);
  return job.stopping == StopWhy::kNone && !worker.exit->lost && node != state.nodes().end() &&
         node->second.up;
}

engine::Policy EngineView::PolicyOf(const State& state) const {
  if (state.policies().empty()) return settings_.policy;
  return engine::RecordedPolicy(state.policies().back().said.settings);
}

Result<void> EngineView::Build(const State& state, std::int64_t now_ms) {
  engine::Setup setup;
  setup.topologies = settings_.topologies;
  setup.queues = state.queues();
  setup.policy = PolicyOf(state);
  std::set<std::string> countables;
  for (const auto& [name, record] : state.nodes()) {
    for (const auto& [other, amount] : record.node.other) countables.insert(other);
  }
  setup.countables.assign(countables.begin(), countables.end());
  auto cluster = engine::Cluster::Make(setup);
  if (!cluster) return tl::unexpected(cluster.error());
  auto empty = engine::Cluster::Make(std::move(setup));
  if (!empty) return tl::unexpected(empty.error());
  scheduler_.reset();
  cluster_ = std::move(*cluster);
  empty_ = std::move(*empty);
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
  ids_.clear();
  array_of_.clear();
  tasks_.clear();
  cursor_.clear();
  later_.clear();
  reserved_.clear();
  outdated_ = false;
  numbers_.clear();
  real_nodes_ = 0;
  marked_nodes_.clear();
  for (const auto& [name, record] : state.nodes()) {
    if (auto added = AddNode(record); !added) return added;
  }
  SetReservations(state);
  SetPastUse(state.past_use());
  // Whoever holds something first: an array's turn is counted by them.
  for (const bool holds : {true, false}) {
    for (const auto& [id, job] : state.jobs()) {
      if (!job.ending && job.Holds() == holds) Sync(job, now_ms);
    }
  }
  return {};
}

Result<engine::JobId> EngineView::Add(const JobRecord& job, std::int64_t now_ms) {
  auto id = cluster_->AddJob(*job.spec, job.submitted_ms, std::to_string(job.id));
  if (!id) return id;
  ids_.emplace(job.id, *id);
  if (numbers_.size() <= *id) numbers_.resize(*id + 1, 0);
  numbers_[*id] = job.id;
  if (job.array != 0) {
    array_of_.emplace(job.id, job.array);
    ++tasks_[job.array];
  }
  if (job.checkpoint_ms >= 0) cluster_->ReportCheckpoint(*id, job.checkpoint_ms);
  cluster_->SetExpected(*id, ExpectedMs(job));
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) Place(*id, w, job.workers[w]);
  cluster_->ReportResizeCost(*id, job.pause_ms);
  cluster_->SetServed(*id, job.GpuMs(now_ms), now_ms);
  if (job.speed) {
    cluster_->ReportSpeed(*id, SpeedOf(*job.speed));
    // It keeps the size it was given until sizes are given out again.
    const bool sized = cluster_->policy().by_goodput && cluster_->job(*id).active > 0;
    if (sized) cluster_->SetTarget(*id, cluster_->job(*id).active);
  }
  return id;
}

void EngineView::Place(engine::JobId id, std::uint32_t worker, const state::WorkerRecord& record) {
  if (worker >= cluster_->job(id).workers.size()) return;
  const engine::WorkerRef ref{id, worker};
  if (record.phase == WorkerPhase::kSucceeded) {
    (void)cluster_->ReportWorker(ref, WorkerState::kSucceeded, 0, 0, record.started_ms);
  }
  if (!record.Holds()) return;
  const auto node = cluster_->FindNode(record.node);
  if (node == engine::kNone) return;
  // A gang that is formed anew keeps its places.
  const bool leaves = record.phase == WorkerPhase::kLeaving && record.why != StopWhy::kRegrouped;
  const auto state = leaves ? WorkerState::kLeaving : WorkerState::kRunning;
  (void)cluster_->ReportWorker(ref, state, node, record.devices, record.placed_ms);
}

bool EngineView::HasPlace(JobNumber job, std::uint32_t worker) const {
  const auto known = ids_.find(job);
  if (known == ids_.end() || worker >= cluster_->job(known->second).workers.size()) return false;
  return cluster_->worker({known->second, worker}).place.bank != engine::kNone;
}

std::optional<std::int64_t> EngineView::ReservedFrom(JobNumber job) const {
  const auto found = reserved_.find(job);
  return found == reserved_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t EngineView::TasksOf(JobNumber array) const {
  const auto found = tasks_.find(array);
  return found == tasks_.end() ? 0 : found->second;
}

void EngineView::Sync(const JobRecord& job, std::int64_t now_ms) {
  const bool barred = job.ending.has_value() || BarOf(job, now_ms) != Bar::kNone;
  const bool holds = job.Holds();
  const bool ends = job.Count(WorkerPhase::kSucceeded) > 0;  // grows no more
  const auto known = ids_.find(job.id);
  if (known == ids_.end()) {
    if (job.ending || (barred && !holds)) {
      if (!job.ending && job.not_before_ms > now_ms) later_.emplace(job.not_before_ms, job.id);
      return;
    }
    const auto at_once = job.spec->array ? job.spec->array->at_once : 0;
    if (!holds && at_once > 0 && job.array != 0 && TasksOf(job.array) >= at_once) {
      auto& next = cursor_.try_emplace(job.array, job.id).first->second;
      next = std::min(next, job.id);
      return;
    }
    auto id = Add(job, now_ms);
    // Its queue may have been taken away; it then waits outside until there is one again.
    if (id && (barred || ends)) cluster_->SetHold(*id, true);
    return;
  }
  if (job.ending || (barred && !holds)) {
    if (!job.ending && job.not_before_ms > now_ms) later_.emplace(job.not_before_ms, job.id);
    return Remove(job.id);
  }
  const bool hold = barred || ends;
  if (cluster_->job(known->second).on_hold != hold) cluster_->SetHold(known->second, hold);
}

void EngineView::Remove(JobNumber job) {
  const auto known = ids_.find(job);
  if (known == ids_.end()) return;
  cluster_->RemoveJob(known->second);
  ids_.erase(known);
  if (const auto task = array_of_.find(job); task != array_of_.end()) {
    --tasks_[task->second];
    array_of_.erase(task);
  }
}

void EngineView::SetLeaving(JobNumber job, std::uint32_t worker) {
  const auto known = ids_.find(job);
  if (known == ids_.end()) return;
  if (worker >= cluster_->job(known->second).workers.size()) return;
  const engine::WorkerRef ref{known->second, worker};
  const auto& place = cluster_->worker(ref).place;
  if (place.state != WorkerState::kRunning) return;
  const auto node = cluster_->nodes().bank(place.bank).node;
  (void)cluster_->ReportWorker(ref, WorkerState::kLeaving, node, place.devices,
                               cluster_->worker(ref).started_ms);
}

void EngineView::SetGone(JobNumber job, std::uint32_t worker, bool succeeded) {
  const auto known = ids_.find(job);
  if (known == ids_.end()) return;
  if (worker >= cluster_->job(known->second).workers.size()) return;
  const engine::WorkerRef ref{known->second, worker};
  const auto now = cluster_->worker(ref).place.state;
  if (succeeded) {
    (void)cluster_->ReportWorker(ref, WorkerState::kSucceeded, 0, 0, 0);
  } else if (now == WorkerState::kLeaving) {
    cluster_->ReportLeft(ref);
  } else if (now == WorkerState::kRunning) {
    (void)cluster_->ReportWorker(ref, WorkerState::kPending, 0, 0, 0);
  }
}

Result<void> EngineView::AddNode(const state::NodeRecord& node) {
  auto added = cluster_->AddNode(node.node);
  if (!added) return tl::unexpected(added.error());
  if (!node.up) cluster_->SetNodeUp(*added, false);
  (void)empty_->AddNode(node.node);
  bool real = true;
  for (const char* mark : {"virtual", "simulated"}) {
    if (!node.node.labels.contains(mark)) continue;
    ++marked_nodes_[mark];
    real = false;
  }
  if (real) ++real_nodes_;
  return {};
}

bool EngineView::AllMarked(const std::string& label) const {
  return real_nodes_ == 0 && marked_nodes_.contains(label);
}

void EngineView::SetNode(const state::NodeRecord& node) {
  const auto id = cluster_->FindNode(node.node.name);
  if (id == engine::kNone) {
    const auto added = AddNode(node);
    MUSTER_CHECK(added.has_value(), "a node that was admitted fits into the cluster");
    return;
  }
  if (cluster_->nodes().node(id).up != node.up) cluster_->SetNodeUp(id, node.up);
  cluster_->SetNodeCordoned(id, node.node.cordoned, node.node.draining);
}

void EngineView::SetReservations(const State& state) {
  std::vector<model::Reservation> all;
  all.reserve(state.reservations().size());
  for (const auto& [name, record] : state.reservations()) all.push_back(record.reservation);
  cluster_->SetReservations(std::move(all));
}

void EngineView::SetPastUse(const std::map<std::string, std::int64_t>& gpu_ms) {
  for (const auto& [name, use] : gpu_ms) {
    const auto queue = cluster_->queues().Find(name);
    if (queue != engine::kNone) cluster_->SetPastUse(queue, use);
  }
}

// Gives the tasks that wait for their turn as much of it as there is.
void EngineView::NextTasks(const State& state, JobNumber array, std::int64_t now_ms) {
  const auto* whole = state.FindArray(array);
  const auto cursor = cursor_.find(array);
  if (whole == nullptr || cursor == cursor_.end()) return;
  const auto at_once = whole->spec->array->at_once;
  const auto last = array + static_cast<JobNumber>(whole->tasks);
  for (JobNumber next = cursor->second; next <= last && TasksOf(array) < at_once; ++next) {
    cursor->second = next + 1;
    const auto* task = state.Find(next);
    if (task != nullptr && !task->ending) Sync(*task, now_ms);
  }
}

struct EngineView::Applier {
  EngineView& view;
  const State& state;
  std::int64_t now_ms;

  void Sync(JobNumber id) const {
    const auto* job = state.Find(id);
    if (job != nullptr) view.Sync(*job, now_ms);
  }
  void operator()(const model::DaemonStarted&) const {}
  void operator()(const model::CycleRan&) const {}
  void operator()(const model::NumbersSkipped&) const {}
  void operator()(const model::WorkerPlaced&) const {}
  void operator()(const model::WorkerStarted&) const {}
  void operator()(const model::UserSet&) const {}
  void operator()(const model::UserRemoved&) const {}
  void operator()(const model::TokenMade&) const {}
  void operator()(const model::TokenRevoked&) const {}
  void operator()(const model::RequestAnswered&) const {}
  void operator()(const model::NodeJoined& e) const { view.SetNode(state.nodes().at(e.node.name)); }
  void operator()(const model::NodeWent& e) const { view.SetNode(state.nodes().at(e.node)); }
  void operator()(const model::NodeMarked& e) const { view.SetNode(state.nodes().at(e.node)); }
  void operator()(const model::QueuesApplied&) const { view.outdated_ = true; }
  void operator()(const model::PolicyApplied&) const { view.outdated_ = true; }
  void operator()(const model::ReservationSet&) const { view.SetReservations(state); }
  void operator()(const model::ReservationRemoved&) const { view.SetReservations(state); }
  void operator()(const model::JobSubmitted& e) const {
    if (!e.spec->array) return Sync(e.job);
    const auto last = e.job + static_cast<JobNumber>(state.FindArray(e.job)->tasks);
    if (e.spec->array->at_once > 0) {
      view.cursor_[e.job] = e.job + 1;
      return view.NextTasks(state, e.job, now_ms);
    }
    for (JobNumber task = e.job + 1; task <= last; ++task) Sync(task);
  }
  void operator()(const model::JobHeld& e) const {
    Sync(e.job);
    Turn(e.job);
  }
  void operator()(const model::JobResumed& e) const { Sync(e.job); }
  void operator()(const model::JobStopping& e) const { Sync(e.job); }
  void operator()(const model::JobChanged& e) const {
    if (e.once_stopped) return;
    view.Remove(e.job);
    Sync(e.job);
  }
  void operator()(const model::JobRequeued& e) const {
    view.Remove(e.job);
    Sync(e.job);
    Turn(e.job);
  }
  void operator()(const model::JobEnded& e) const {
    view.Remove(e.job);
    for (const auto id : state.released()) Sync(id);
    Turn(e.job);
  }
  void operator()(const model::WorkerLeaving& e) const {
    const bool ours = e.why == StopWhy::kPaused || e.why == StopWhy::kShrunk ||
                      e.why == StopWhy::kMoved || e.why == StopWhy::kRegrouped;
    if (!ours) view.SetLeaving(e.job, e.worker);
  }
  void operator()(const model::WorkerEnded& e) const {
    const JobRecord& job = *state.Find(e.job);
    if (KeepsPlace(state, job, e.worker)) return;
    view.SetGone(e.job, e.worker, job.workers[e.worker].phase == WorkerPhase::kSucceeded);
    Sync(e.job);
    Expect(job);
  }
  void operator()(const model::CheckpointTaken& e) const {
    const auto known = view.ids_.find(e.job);
    if (known != view.ids_.end()) view.cluster_->ReportCheckpoint(known->second, e.at_ms);
    Expect(*state.Find(e.job));
  }
  void operator()(const model::SpeedReported& e) const {
    const auto known = view.ids_.find(e.job);
    if (known == view.ids_.end()) return;
    view.cluster_->ReportSpeed(known->second, SpeedOf(*state.Find(e.job)->speed));
  }
  void operator()(const model::JobIdle&) const {}
  void operator()(const model::JobResized& e) const {
    const auto known = view.ids_.find(e.job);
    if (known == view.ids_.end()) return;
    view.cluster_->ReportResizeCost(known->second, state.Find(e.job)->pause_ms);
  }
  void operator()(const model::UseNoted& e) const { view.SetPastUse(e.gpu_ms); }

  void Expect(const JobRecord& job) const {
    const auto known = view.ids_.find(job.id);
    if (known != view.ids_.end()) view.cluster_->SetExpected(known->second, ExpectedMs(job));
  }
  void Turn(JobNumber id) const {
    const auto* job = state.Find(id);
    if (job != nullptr && job->array != 0) view.NextTasks(state, job->array, now_ms);
  }
};

void EngineView::Apply(const model::Event& event, const State& state) {
  std::visit(Applier{*this, state, event.at_ms}, event.body);
}

Result<model::Plan> EngineView::Cycle(const State& state, std::int64_t now_ms) {
  if (outdated_) {
    if (auto built = Build(state, now_ms); !built) return tl::unexpected(built.error());
  }
  while (!later_.empty() && later_.begin()->first <= now_ms) {
    const auto* job = state.Find(later_.begin()->second);
    later_.erase(later_.begin());
    if (job != nullptr) Sync(*job, now_ms);
  }
  auto plan = scheduler_->Cycle(now_ms);
  reserved_.clear();
  for (const auto& made : plan.reserved) reserved_.emplace(numbers_[made.job], made.at_ms);
  return plan;
}

namespace {

struct Advice {
  std::string path;  // the key of the job that is meant
  const char* hint = "";
};

constexpr const char* kAskForLess =
    "ask for less, or for another type; `muster nodes` shows what there is";

std::string HostKey(const engine::Cluster& cluster, std::size_t host) {
  if (host == engine::kHostCpu) return "cpus";
  if (host == engine::kHostMemory) return "memory";
  return cluster.nodes().host_names()[host - engine::kFirstHostOther];
}

Advice AdviceOn(const engine::Cluster& cluster, const engine::Shortage& shortage) {
  using Kind = engine::Shortage::Kind;
  switch (shortage.kind) {
    case Kind::kPlace:
      return {
          "nodes",
          "name labels that a node has, and that the queue allows; `muster nodes -o json` shows "
          "them in `labels`"};
    case Kind::kGpuType:
      return {"gpu_types", "name a type that is here; `muster nodes` shows them"};
    case Kind::kGpuMemory:
      return {"resources.gpu_memory", kAskForLess};
    case Kind::kGpus:
      return {"resources.gpus", kAskForLess};
    case Kind::kHost:
      return {"resources." + HostKey(cluster, shortage.host), kAskForLess};
    case Kind::kTogether:
      return {"resources.gpus", kAskForLess};
    case Kind::kWorkers:
      if (shortage.level == engine::kNone) return {"workers", kAskForLess};
      return {"topology", "ask for fewer workers, or let them be further apart"};
  }
  return {};
}

}  // namespace

Result<void> EngineView::Admit(const model::Job& spec, std::int64_t now_ms) {
  auto id = empty_->AddJob(spec, now_ms, "candidate");
  if (!id) return tl::unexpected(id.error());
  const auto why = engine::Explain(*empty_, *id, now_ms);
  // A cluster without nodes is one whose nodes have not come yet.
  const bool nodes = empty_->nodes().size() > 0;
  std::string text;
  Advice advice;
  if (nodes && why.shortage.has_value()) {
    text = engine::Describe(*empty_, *why.shortage);
    advice = AdviceOn(*empty_, *why.shortage);
  } else if (nodes && why.gate == model::Gate::kTopology) {
    text = engine::Sentence(*empty_, why);
    advice = {"topology", "name a level that is here; `muster gpus --topology` shows them"};
  } else if (why.beyond && why.gate == model::Gate::kLimit) {
    text = engine::Sentence(*empty_, why);
    advice = {"queue", "ask for less, or take another queue; `muster queue list` shows limits"};
  }
  empty_->RemoveJob(*id);
  if (text.empty()) return {};
  return tl::unexpected(Error{ErrorCode::kInvalid,
                              "job " + spec.name + " can never run here: " + text, advice.hint,
                              std::move(advice.path)});
}

std::optional<engine::Explanation> EngineView::ExplainGate(JobNumber job, std::int64_t now_ms) {
  const auto known = ids_.find(job);
  if (known == ids_.end()) return std::nullopt;
  return engine::ExplainGate(*cluster_, known->second, now_ms);
}

std::optional<engine::Explanation> EngineView::Explain(JobNumber job, std::int64_t now_ms) {
  const auto known = ids_.find(job);
  if (known == ids_.end()) return std::nullopt;
  return engine::Explain(*cluster_, known->second, now_ms);
}

}  // namespace muster::sim

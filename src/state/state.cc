#include "state/state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::state {

using model::StopWhy;

namespace {

constexpr std::int64_t kOneChangeMs = 1'000;

}  // namespace

// Applies one kind of event each. What an event names exists: only the controller writes them.
struct State::Folder {
  State& s;
  std::int64_t at_ms;
  std::uint64_t revision;  // of this event

  JobRecord& Job(JobNumber id) const {
    const auto found = s.jobs_.find(id);
    MUSTER_CHECK(found != s.jobs_.end(), "an event is about a job that is known");
    return found->second;
  }
  static WorkerRecord& Worker(JobRecord& job, std::uint32_t index) {
    if (job.workers.empty()) {
      std::size_t count = 0;
      for (const auto& role : job.spec->roles) count += static_cast<std::size_t>(role.count);
      job.workers.resize(count);
    }
    MUSTER_CHECK(index < job.workers.size(), "an event is about a worker that the job has");
    return job.workers[index];
  }
  // Keeps count of what an array has going, and of how long the job runs.
  template <typename Change>
  void Tracked(JobRecord& job, Change change) const {
    const bool held = job.Holds();
    job.gpu_ms = job.GpuMs(at_ms);
    job.gpus_since_ms = at_ms;
    change();
    const bool holds = job.Holds();
    if (held == holds) return;
    if (holds) {
      job.running_since_ms = at_ms;
    } else {
      job.ran_ms += std::max<std::int64_t>(0, at_ms - job.running_since_ms);
      job.running_since_ms = 0;
    }
    if (job.array != 0) s.active_tasks_[job.array] += holds ? 1 : -1;
  }

  static std::uint32_t SizeOf(const JobRecord& job) {
    return static_cast<std::uint32_t>(job.Count(WorkerPhase::kPlaced) +
                                      job.Count(WorkerPhase::kRunning));
  }
  static bool Elastic(const model::Job& spec) {
    std::int64_t least = 0, most = 0;
    for (const auto& group : spec.groups) least += group.parent < 0 ? group.minimum : 0;
    for (const auto& role : spec.roles) most += role.count;
    return least < most;
  }
  // Makes the change, and writes down the new size with what is said of it. `noted`: it is one.
  template <typename Change>
  void Sized(JobRecord& job, SizeChange what, bool noted, Change change) const {
    what.from = SizeOf(job);
    change();
    what.to = SizeOf(job);
    if (!noted || what.to == what.from || !Elastic(*job.spec)) return;
    what.at_ms = at_ms;
    auto& list = job.sizes;
    if (!list.empty()) {
      auto& last = list.back();
      if (at_ms - last.at_ms < kOneChangeMs && last.to == what.from && last.pause_ms < 0 &&
          last.why == what.why && last.cause == what.cause && last.rule == what.rule &&
          (last.to > last.from) == (what.to > what.from)) {
        last.to = what.to;
        return;
      }
    }
    if (list.size() == kSizesKept) list.erase(list.begin());
    list.push_back(what);
  }

  void operator()(const model::DaemonStarted&) const {}
  void operator()(const model::CycleRan&) const {}
  void operator()(const model::NumbersSkipped& e) const {
    s.next_job_ = std::max(s.next_job_, e.next);
  }
  void operator()(const model::NodeJoined& e) const {
    auto& record = s.nodes_[e.node.name];
    const bool cordoned = record.node.cordoned, draining = record.node.draining;
    record.node = e.node;
    record.node.cordoned |= cordoned;
    record.node.draining |= draining;
    record.up = true;
    record.why.clear();
    record.revision = revision;
    if (record.joined_ms == 0) record.joined_ms = at_ms;
  }
  void operator()(const model::NodeWent& e) const {
    auto& record = s.nodes_[e.node];
    record.up = e.up;
    record.why = e.why;
    record.revision = revision;
  }
  void operator()(const model::NodeMarked& e) const {
    auto& record = s.nodes_[e.node];
    record.node.cordoned = e.cordoned;
    record.node.draining = e.draining;
    record.revision = revision;
  }
  void operator()(const model::QueuesApplied& e) const {
    std::map<std::string, QueueRecord> records;
    for (const auto& queue : e.queues) {
      auto& record = records[queue.name];
      record = {at_ms, revision};
      const auto known = s.queue_records_.find(queue.name);
      if (known == s.queue_records_.end()) continue;
      record.created_ms = known->second.created_ms;
      const bool same = std::find(s.queues_.begin(), s.queues_.end(), queue) != s.queues_.end();
      if (same) record.revision = known->second.revision;
    }
    s.queues_ = e.queues;
    s.queue_records_ = std::move(records);
  }

  void operator()(const model::JobSubmitted& e) const {
    JobRecord job;
    job.id = e.job;
    job.spec = e.spec;
    job.user = e.user;
    job.uid = e.uid;
    job.gid = e.gid;
    job.submitted_ms = at_ms;
    job.revision = revision;
    job.follows = e.follows;
    job.expected_ms = e.expected_ms;
    job.expected_from = e.expected_from;
    auto& named = s.by_name_[e.spec->name];
    if (!e.key.empty()) s.requests_.AddSubmitted(e.user, e.key, e.job);
    if (!e.spec->array) {
      named.push_back(e.job);
      s.Insert(std::move(job));
      s.next_job_ = e.job + 1;
      return;
    }
    const auto& range = *e.spec->array;
    ArrayRecord array{e.job, e.spec, e.user, at_ms,   range.last - range.first + 1,
                      0,     0,      0,      revision};
    named.push_back(e.job);
    for (std::int64_t i = 0; i < array.tasks; ++i) {
      job.id = e.job + 1 + static_cast<JobNumber>(i);
      job.array = e.job;
      job.array_index = range.first + i;
      s.Insert(job);
    }
    s.next_job_ = e.job + 1 + static_cast<JobNumber>(array.tasks);
    s.arrays_.emplace(e.job, std::move(array));
  }
  void operator()(const model::JobHeld& e) const { Job(e.job).held = e.on; }
  void operator()(const model::JobChanged& e) const {
    JobRecord& job = Job(e.job);
    if (e.once_stopped) {
      job.next_spec = e.spec;
      return;
    }
    s.Respec(job, e.spec);
    if (job.workers.empty()) return;
    std::size_t count = 0;
    for (const auto& role : e.spec->roles) count += static_cast<std::size_t>(role.count);
    job.workers.resize(std::max(count, job.workers.size()));
  }
  void operator()(const model::JobStopping& e) const {
    JobRecord& job = Job(e.job);
    job.stopping = e.why;
    job.stopped_by = e.by;
    if (e.why == StopWhy::kSuspended) job.suspended = true;
  }
  void operator()(const model::JobResumed& e) const {
    JobRecord& job = Job(e.job);
    job.suspended = false;
    job.held = false;
  }
  void operator()(const model::JobRequeued& e) const {
    JobRecord& job = Job(e.job);
    job.stopping = StopWhy::kNone;
    job.idle_until_ms = 0;
    if (job.next_spec) s.Respec(job, std::exchange(job.next_spec, nullptr));
    job.not_before_ms = e.not_before_ms;
    job.paused = false;
    if (e.counts) ++job.failures;
    for (auto& worker : job.workers) {
      worker.phase = WorkerPhase::kWaiting;
      worker.why = StopWhy::kNone;
    }
  }
  void operator()(const model::JobEnded& e) const {
    JobRecord& job = Job(e.job);
    Tracked(job, [&] {
      for (auto& worker : job.workers) {
        if (worker.Holds()) worker.phase = WorkerPhase::kFailed;
      }
    });
    job.ending = Ending{e.end, e.why, at_ms, e.worker, e.exit};
    job.follows.clear();
    s.Release(e.job);
    if (job.array != 0) {
      auto& array = s.arrays_.at(job.array);
      ++(e.end == model::End::kSucceeded ? array.succeeded
         : e.end == model::End::kFailed  ? array.failed
                                         : array.cancelled);
      if (array.Ended()) {
        s.active_tasks_.erase(job.array);
        s.Release(job.array);
      }
    }
    s.ended_.push_back(e.job);
    ++s.ended_jobs_;
    while (s.ended_.size() > kEndedKept) {
      s.Forget(s.ended_.front());
      s.ended_.pop_front();
    }
  }
  void operator()(const model::WorkerPlaced& e) const {
    JobRecord& job = Job(e.job);
    Sized(job, {}, true, [&] { Place(job, e); });
  }
  void Place(JobRecord& job, const model::WorkerPlaced& e) const {
    Tracked(job, [&] {
      WorkerRecord& worker = Worker(job, e.worker);
      MUSTER_CHECK(!worker.Holds(), "a worker is placed where it holds no place");
      // A gang that is formed anew counts with the first of its members that gets its place back.
      const bool regrouped = worker.why == StopWhy::kRegrouped && !job.forming;
      if (!job.Holds() || regrouped) {
        if (job.generation > 0) ++job.restarts;
        ++job.generation;
        job.forming = true;
      }
      // Why others left before was a matter of the last attempt.
      if (!job.Holds()) {
        for (auto& waiting : job.workers) waiting.why = StopWhy::kNone;
      }
      job.paused = false;
      worker = WorkerRecord{};
      worker.phase = WorkerPhase::kPlaced;
      worker.launch = e.launch;
      worker.node = e.node;
      worker.devices = e.devices;
      worker.placed_ms = at_ms;
    });
  }
  void operator()(const model::WorkerLeaving& e) const {
    JobRecord& job = Job(e.job);
    WorkerRecord& worker = Worker(job, e.worker);
    SizeChange left;
    left.why = e.why;
    left.rule = e.rule;
    left.cause = e.cause;
    Sized(job, left, true, [&] { worker.phase = WorkerPhase::kLeaving; });
    worker.why = e.why;
    worker.leaving_ms = at_ms;
    if (e.why != StopWhy::kPaused && e.why != StopWhy::kMoved && e.why != StopWhy::kShrunk) return;
    auto& list = job.preemptions;
    if (list.empty() || list.back().at_ms != at_ms || list.back().why != e.why ||
        list.back().cause != e.cause) {
      if (list.size() == kPreemptionsKept) list.erase(list.begin());
      list.push_back({at_ms, e.why, e.rule, e.cause, 0, 0});
      if (e.why == StopWhy::kPaused) ++job.preempted;
      job.paused = e.why == StopWhy::kPaused;
    }
    Preemption& last = list.back();
    ++last.workers;
    last.lost_gpu_ms = e.lost_gpu_ms < 0 ? -1 : std::max(last.lost_gpu_ms, e.lost_gpu_ms);
  }
  void operator()(const model::WorkerStarted& e) const {
    JobRecord& job = Job(e.job);
    WorkerRecord& worker = Worker(job, e.worker);
    if (worker.launch != e.launch) return;
    if (worker.phase == WorkerPhase::kPlaced) {
      worker.phase = WorkerPhase::kRunning;
      job.forming = false;
    }
    worker.started_ms = e.at_ms;
    worker.pid = e.pid;
    worker.limits = e.limits;
    if (job.started_ms == 0) job.started_ms = e.at_ms;
  }
  void operator()(const model::WorkerEnded& e) const {
    JobRecord& job = Job(e.job);
    Sized(job, {}, !e.exit.Succeeded(), [&] { EndWorker(job, e); });
  }
  void EndWorker(JobRecord& job, const model::WorkerEnded& e) const {
    Tracked(job, [&] {
      WorkerRecord& worker = Worker(job, e.worker);
      const bool left =
          worker.phase == WorkerPhase::kLeaving && (!e.exit.Succeeded() || e.exit.stopped);
      worker.exit = e.exit;
      worker.phase = left                 ? WorkerPhase::kWaiting
                     : e.exit.Succeeded() ? WorkerPhase::kSucceeded
                                          : WorkerPhase::kFailed;
    });
  }
  void operator()(const model::CheckpointTaken& e) const {
    JobRecord& job = Job(e.job);
    job.checkpoint_ms = e.at_ms;
    job.checkpoint_step = e.step;
  }
  // What was told since the last change is what that one cost.
  void operator()(const model::JobResized& e) const {
    JobRecord& job = Job(e.job);
    job.resized_ms = std::max(job.resized_ms, e.at_ms);
    job.pause_ms = job.pause_ms < 0 ? e.pause_ms : (3 * job.pause_ms + e.pause_ms) / 4;
    if (job.sizes.empty()) return;
    auto& pause_ms = job.sizes.back().pause_ms;
    pause_ms = std::max<std::int64_t>(pause_ms, 0) + e.pause_ms;
  }
  void operator()(const model::SpeedReported& e) const {
    JobRecord& job = Job(e.job);
    auto next =
        job.speed ? std::make_shared<SpeedRecord>(*job.speed) : std::make_shared<SpeedRecord>();
    model::Speed now = e.speed;
    if (now.gpu_type.empty()) now.gpu_type = s.GpuTypeOf(job);
    const auto same = std::ranges::find_if(next->told, [&](const model::Speed& told) {
      return told.nodes == now.nodes && told.gpus == now.gpus && told.samples == now.samples &&
             told.gpu_type == now.gpu_type;
    });
    if (same != next->told.end()) {
      *same = now;
    } else {
      if (next->told.size() == kSpeedsKept) next->told.erase(next->told.begin());
      next->told.push_back(now);
    }
    next->latest = now;
    job.speed = std::move(next);
  }
  void operator()(const model::JobIdle& e) const { Job(e.job).idle_until_ms = e.released_at_ms; }
  void operator()(const model::UseNoted& e) const {
    s.past_use_ = e.gpu_ms;
    s.past_use_ms_ = at_ms;
  }
  void operator()(const model::UserSet& e) const {
    auto& user = s.users_[e.name];
    const auto created_ms = user.created_ms == 0 ? at_ms : user.created_ms;
    user = {e.name, e.role, e.groups, at_ms, created_ms, revision};
  }
  void operator()(const model::UserRemoved& e) const {
    s.users_.erase(e.name);
    std::erase_if(s.tokens_, [&](const auto& token) { return token.second.user == e.name; });
  }
  void operator()(const model::TokenMade& e) const {
    s.tokens_[e.id] = {e.id, e.name, e.user, e.hash, at_ms, e.expires_ms, e.role, e.by, revision};
  }
  void operator()(const model::TokenRevoked& e) const { s.tokens_.erase(e.id); }
  void operator()(const model::RequestAnswered& e) const { s.requests_.Add({e, 0}); }
  void operator()(const model::PolicyApplied& e) const {
    if (s.policies_.size() == kPoliciesKept) s.policies_.erase(s.policies_.begin());
    s.policies_.push_back({e, at_ms, revision});
  }
  void operator()(const model::ReservationSet& e) const {
    auto& record = s.reservations_[e.reservation.name];
    const auto created_ms = record.created_ms == 0 ? at_ms : record.created_ms;
    record = {e.reservation, e.by, created_ms, revision};
  }
  void operator()(const model::ReservationRemoved& e) const { s.reservations_.erase(e.name); }
};

void State::Fold(const model::Event& event) {
  released_.clear();
  std::visit(Folder{*this, event.at_ms, revision_ + 1}, event.body);
  ++revision_;
  const auto touched = jobs_.find(model::JobOf(event.body));
  if (touched != jobs_.end()) {
    touched->second.revision = revision_;
    const auto array = arrays_.find(touched->second.array);
    if (array != arrays_.end()) array->second.revision = revision_;
  }
  last_ms_ = event.at_ms;
}

void State::Follow(const JobRecord& job) {
  for (const auto& f : job.follows) followers_[f.job].push_back(job.id);
}

void State::Release(JobNumber ended) {
  const auto found = followers_.find(ended);
  if (found == followers_.end()) return;
  for (const JobNumber id : found->second) {
    const auto job = jobs_.find(id);
    if (job == jobs_.end()) continue;
    std::erase_if(job->second.follows, [&](const auto& f) { return f.job == ended; });
    released_.push_back(id);
  }
  followers_.erase(found);
}

std::span<const JobNumber> State::Followers(JobNumber job) const {
  const auto found = followers_.find(job);
  if (found == followers_.end()) return {};
  return found->second;
}

void State::Forget(JobNumber id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  const JobRecord& job = found->second;
  const JobNumber named = job.array != 0 ? job.array : id;
  bool last = true;
  if (job.array != 0) {
    // The array's own entry goes with the last task that is remembered.
    const auto& array = arrays_.at(job.array);
    const auto first = jobs_.upper_bound(job.array);
    const auto end = jobs_.upper_bound(job.array + static_cast<JobNumber>(array.tasks));
    last = array.Ended() && std::next(first) == end;
  }
  if (last) {
    const auto list = by_name_.find(job.spec->name);
    if (list != by_name_.end()) {
      std::erase(list->second, named);
      if (list->second.empty()) by_name_.erase(list);
    }
    if (job.array != 0) arrays_.erase(job.array);
  }
  if (order_.kept) order_.kept->Remove(job);
  jobs_.erase(found);
}

void State::Insert(JobRecord job) {
  Follow(job);
  const JobNumber id = job.id;
  const auto inserted = jobs_.emplace_hint(jobs_.end(), id, std::move(job));
  if (order_.kept) order_.kept->Add(inserted->second);
}

void State::Respec(JobRecord& job, std::shared_ptr<const model::Job> spec) {
  if (order_.kept) order_.kept->Remove(job);
  job.spec = std::move(spec);
  if (order_.kept) order_.kept->Add(job);
}

std::string State::GpuTypeOf(const JobRecord& job) const {
  for (const auto& worker : job.workers) {
    const auto node = nodes_.find(worker.node);
    if (!worker.Holds() || worker.devices == 0 || node == nodes_.end()) continue;
    return model::GpuTypeOf(node->second.node, worker.devices);
  }
  return {};
}

const JobRecord* State::Find(JobNumber job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

QueueRecord State::RecordOf(const std::string& queue) const {
  const auto found = queue_records_.find(queue);
  return found == queue_records_.end() ? QueueRecord{} : found->second;
}

const ArrayRecord* State::FindArray(JobNumber array) const {
  const auto found = arrays_.find(array);
  return found == arrays_.end() ? nullptr : &found->second;
}

std::span<const JobNumber> State::Named(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::span<const JobNumber>() : found->second;
}

std::int64_t State::ActiveTasks(JobNumber array) const {
  const auto found = active_tasks_.find(array);
  return found == active_tasks_.end() ? 0 : found->second;
}

void State::Index() {
  for (const auto& [id, array] : arrays_) by_name_[array.spec->name].push_back(id);
  for (const auto& [id, job] : jobs_) {
    if (job.array == 0) by_name_[job.spec->name].push_back(id);
    Follow(job);
    if (job.array != 0 && job.Holds()) ++active_tasks_[job.array];
  }
  for (auto& [name, ids] : by_name_) std::sort(ids.begin(), ids.end());
}

}  // namespace muster::state

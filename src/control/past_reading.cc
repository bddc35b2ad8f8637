#include "control/past_reading.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "control/view_parts.h"
#include "sim/job_speed.h"
#include "sim/past/past_file.h"

namespace muster::control {

using state::JobRecord;
using state::WorkerPhase;

namespace {

constexpr std::size_t kJobsAtOnce = 2'000;
constexpr std::size_t kRowsAtOnce = 500;
constexpr std::size_t kSizedAtOnce = 50;
constexpr std::size_t kMostJobs = 200'000;
constexpr std::size_t kMostEvents = 100'000;  // of one job

// What its workers held when it was last looked at; those that were taken back before are not
// among them.
struct Size {
  std::int64_t workers = 0, gpu_milli = 0;
  int gpus = 0;
  std::set<std::string> nodes;
  std::string gpu_type;
};

// The type of the GPUs that somebody held there.
std::string GpuTypeOn(const sim::Past& past, const std::string& name, std::uint64_t devices) {
  const auto node = std::ranges::find(past.nodes, name, &model::Node::name);
  return node == past.nodes.end() ? "" : model::GpuTypeOf(*node, devices);
}

Size SizeOf(const sim::Past& past, const JobRecord& job) {
  Size size;
  const auto roles = WorkerRoles(*job.spec);
  for (std::size_t w = 0; w < job.workers.size() && w < roles.size(); ++w) {
    const auto& worker = job.workers[w];
    const bool left =
        worker.phase == WorkerPhase::kWaiting && worker.why == model::StopWhy::kShrunk;
    if (worker.launch == 0 || left) continue;
    ++size.workers;
    size.gpu_milli += sim::HeldMilli(*job.spec, roles[w], worker.devices);
    size.gpus += std::popcount(worker.devices);
    size.nodes.insert(worker.node);
    size.gpu_type = GpuTypeOn(past, worker.node, worker.devices);
  }
  return size;
}

std::optional<engine::JobSpeed> SpeedOf(const std::shared_ptr<const state::SpeedRecord>& speed) {
  if (!speed) return std::nullopt;
  return sim::SpeedOf(*speed);
}

// What a job did, from the events of its workers.
class Worked {
 public:
  Worked(const sim::Past& past, const sim::PastJob& job)
      : past_(past), job_(job), speed_(SpeedOf(job.speed)) {}

  void Add(std::int64_t at_ms, const model::EventBody& body) {
    if (const auto* placed = std::get_if<model::WorkerPlaced>(&body)) {
      Until(at_ms);
      held_[placed->worker] = {placed->node, std::popcount(placed->devices)};
      gpu_type_ = GpuTypeOn(past_, placed->node, placed->devices);
    }
    if (const auto* ended = std::get_if<model::WorkerEnded>(&body)) {
      Until(at_ms);
      cut_ |= held_.erase(ended->worker) == 0;
      if (held_.empty() && !job_.checkpoints && !ended->exit.Succeeded()) work_ = 0;
    }
  }
  // None: its beginning is not in the journal any more.
  std::optional<std::int64_t> Get(std::int64_t end_ms) {
    Until(end_ms);
    return cut_ || work_ == 0 ? std::nullopt : std::optional(work_);
  }

 private:
  void Until(std::int64_t at_ms) {
    const auto from = std::exchange(at_ms_, at_ms);
    if (held_.empty()) return;
    std::set<std::string_view> nodes;
    int gpus = 0;
    for (const auto& [worker, place] : held_) {
      nodes.insert(place.first);
      gpus += place.second;
    }
    const auto pace =
        sim::PaceOf(speed_ ? &*speed_ : nullptr,
                    {std::ssize(held_), static_cast<int>(nodes.size()), gpus, gpu_type_});
    work_ += pace * (at_ms - from);
  }

  const sim::Past& past_;
  const sim::PastJob& job_;
  std::optional<engine::JobSpeed> speed_;
  std::string gpu_type_;  // that it holds
  std::map<std::uint32_t, std::pair<std::string, int>> held_;
  std::int64_t at_ms_ = 0;
  std::int64_t work_ = 0;
  bool cut_ = false;
};

}  // namespace

void PastReading::Begin(Controller& control) {
  const auto& state = control.state();
  past_.recorded = true;
  past_.to_ms = control.NowMs();
  past_.from_ms = past_.to_ms - back_ms_;
  policy_ = engine::ChangedSettings(control.engine().PolicyOf(state));
  past_.queues = state.queues();
  past_.topologies = control.settings().engine.topologies;
  for (const auto& [name, record] : state.nodes()) {
    if (record.up) past_.nodes.push_back(record.node);
  }
}

void PastReading::AddJob(const JobRecord& job) {
  if (job.ending && job.ending->at_ms < past_.from_ms) return;
  if (!known_.insert(job.id).second) return;
  if (job.started_ms == 0) {
    ++past_.left_out;
    return;
  }
  const auto end = job.ending ? job.ending->at_ms : past_.to_ms;
  sim::PastJob past;
  past.id = job.id;
  past.spec = job.spec;
  if (job.spec->roles.size() > 1) past.roles = WorkerRoles(*job.spec);
  past.user = job.user;
  past.array = job.array;
  past.submitted_ms = job.submitted_ms;
  past.counted = job.submitted_ms >= past_.from_ms;
  past.tells = job.checkpoint_ms >= 0;
  past.checkpoints = past.tells || sim::KeepsWork(*job.spec);
  past.regroups = NeedsRegroup(*job.spec);
  past.speed = job.speed;
  past.pause_ms = job.pause_ms;
  past.expected_ms = job.expected_ms;
  const auto ran = job.ran_ms + (job.running_since_ms > 0 ? end - job.running_since_ms : 0);
  const auto size = SizeOf(past_, job);
  past.truth = {job.started_ms, job.ending ? end : 0, ran, size.gpu_milli, job.preempted};
  // Without a checkpoint only what came after the last start was of use.
  const auto& first = job.workers.front();
  const auto last_start = std::max(first.placed_ms, first.started_ms);
  const auto useful = past.checkpoints || job.restarts == 0 ? ran : std::min(ran, end - last_start);
  const auto speed = SpeedOf(job.speed);
  const auto pace =
      sim::PaceOf(speed ? &*speed : nullptr,
                  {size.workers, static_cast<int>(size.nodes.size()), size.gpus, size.gpu_type});
  past.work = std::max<std::int64_t>(1, useful * pace);
  past_.still_there += job.ending ? 0 : 1;
  past_.jobs.push_back(std::move(past));
}

bool PastReading::AddState(const state::State& state) {
  auto at = state.jobs().upper_bound(last_);
  for (std::size_t i = 0; i < kJobsAtOnce && at != state.jobs().end(); ++i, ++at) {
    last_ = at->first;
    AddJob(at->second);
  }
  return at == state.jobs().end();
}

Result<bool> PastReading::AddHistory(state::Store& store) {
  state::HistoryQuery query;
  query.before = before_;
  query.limit = kRowsAtOnce;
  auto rows = store.History(query);
  if (!rows) return tl::unexpected(rows.error());
  for (const auto& row : *rows) {
    before_ = row.job;
    if (row.ended_ms < past_.from_ms || known_.contains(row.job)) continue;
    auto job = state::DecodeJobRecord(row.body);
    if (!job) return tl::unexpected(job.error());
    AddJob(*job);
  }
  if (past_.jobs.size() > kMostJobs) {
    return Fail(ErrorCode::kInvalid,
                "there were more than " + std::to_string(kMostJobs) + " jobs in that time",
                "look at a shorter time: 1d");
  }
  return rows->size() < kRowsAtOnce;
}

// The sizes that elastic jobs really had.
Result<bool> PastReading::AddSizes(state::Store& store) {
  for (std::size_t done = 0; sized_ < past_.jobs.size() && done < kSizedAtOnce; ++sized_) {
    auto& job = past_.jobs[sized_];
    if (LeastWorkers(*job.spec) == MostWorkers(*job.spec)) continue;
    ++done;
    Worked worked(past_, job);
    state::RecordQuery query;
    query.job = job.id;
    query.limit = kMostEvents;
    auto read = store.Read(query, [&](const state::Record& record) -> Result<void> {
      auto body = model::DecodeEvent(record.body);
      if (!body) return tl::unexpected(body.error());
      worked.Add(record.at_ms, *body);
      return {};
    });
    if (!read) return tl::unexpected(read.error());
    const auto end = job.truth.ended_ms > 0 ? job.truth.ended_ms : past_.to_ms;
    if (const auto work = worked.Get(end)) job.work = *work;
  }
  return sized_ == past_.jobs.size();
}

Result<bool> PastReading::Add(Controller& control) {
  switch (part_) {
    case Part::kBegin:
      Begin(control);
      part_ = Part::kState;
      return false;
    case Part::kState:
      if (AddState(control.state())) part_ = Part::kHistory;
      return false;
    case Part::kHistory: {
      auto done = AddHistory(control.store());
      if (done && *done) part_ = Part::kSizes;
      if (!done) return done;
      return false;
    }
    case Part::kSizes:
      return AddSizes(control.store());
  }
  return true;
}

sim::Past PastReading::Take() {
  sim::Finish(past_);
  // Where the journal is younger than the time that was asked for, the stretch begins with it.
  if (!past_.jobs.empty()) {
    const auto first = std::ranges::min(past_.jobs, {}, &sim::PastJob::submitted_ms).submitted_ms;
    past_.from_ms = std::max(past_.from_ms, first);
  }
  return std::move(past_);
}

std::string PastReading::TakeFile() { return sim::EncodePast({Take(), std::move(policy_)}); }

}  // namespace muster::control

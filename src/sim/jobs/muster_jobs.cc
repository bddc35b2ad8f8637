#include "sim/jobs/muster_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "sim/jobs/play.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kGi = 1LL << 30;
constexpr int kMostCycles = 1'000;  // in one moment; more is a mistake of the engine
// Some 2 GB of them.
constexpr std::int64_t kMostWorkers = 20'000'000;

bool Elastic(const TraceJob& job, const MusterRules& rules) {
  return rules.elastic && job.gpus > 1;
}

std::int64_t MostWorkers(const TraceJob& job, const MusterRules& rules) {
  return Elastic(job, rules) ? 2 * job.gpus : job.gpus;
}

// How JobPlay lets the job run, as it would report it: a second for a step of its batch on the GPUs
// that it asks for.
engine::GoodputModel SpeedOf(const TraceJob& job) {
  constexpr int kSamples = 64;  // of a GPU
  engine::GoodputModel model;
  model.steps.compute_b = (1 - kSerialShare) / kSamples;
  model.steps.within_a = model.steps.across_a = kSerialShare;
  model.limits.first = model.limits.most = kSamples * static_cast<int>(job.gpus);
  model.limits.max_local = 2 * kSamples;
  return model;
}

}  // namespace

model::Node LabNode(std::int64_t index, std::int64_t gpus) {
  model::Node node;
  node.name = fmt::format("node-{}", index);
  model::Gpu gpu;
  gpu.memory_bytes = 80 * kGi;
  gpu.nvlink_island = 0;
  node.gpus.assign(static_cast<std::size_t>(gpus), gpu);
  node.cpu_milli = kMilli * gpus;
  node.memory_bytes = kGi * gpus;
  return node;
}

model::Job LabJob(const TraceJob& from, JobIndex index, const MusterRules& rules) {
  model::Job job;
  job.name = fmt::format("{}-{}", index, from.name);  // a trace may have a name twice
  job.queue = from.queue;
  model::Group group;
  group.minimum = static_cast<int>(Elastic(from, rules) ? (from.gpus + 1) / 2 : from.gpus);
  job.groups.push_back(group);
  model::Role role;
  role.name = "worker";
  role.count = static_cast<int>(MostWorkers(from, rules));
  role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
  role.request.cpu_milli = kMilli;
  role.request.memory_bytes = kGi;
  job.roles.push_back(role);
  return job;
}

Result<void> CheckWorkers(const std::vector<TraceJob>& jobs, const MusterRules& rules) {
  std::int64_t workers = 0;
  for (const auto& job : jobs) workers += MostWorkers(job, rules);
  if (workers <= kMostWorkers) return {};
  return Fail(ErrorCode::kInvalid,
              fmt::format("the jobs have {} workers together, one for each GPU: `muster` has room "
                          "for {}",
                          workers, kMostWorkers),
              "leave out some of the jobs");
}

engine::RuntimeKind RuntimeKindOf(const TraceJob& job) {
  return {job.user, job.queue, job.model.empty() ? job.name : job.model, kMilli * job.gpus};
}

Result<std::unique_ptr<MusterJobs>> MusterJobs::Make(const std::vector<TraceJob>& jobs,
                                                     std::int64_t nodes, std::int64_t gpus_per_node,
                                                     MusterRules rules) {
  if (auto room = CheckWorkers(jobs, rules); !room) return tl::unexpected(room.error());
  std::set<std::string> names;
  for (const auto& job : jobs) names.insert(job.queue);
  engine::Setup setup;
  setup.policy = rules.policy;
  for (const auto& name : names) {
    model::Queue queue;
    queue.name = name;
    queue.created_order = static_cast<std::int64_t>(setup.queues.size());
    if (const auto quota = rules.quotas.find(name); quota != rules.quotas.end()) {
      queue.quota["gpus"] = kMilli * quota->second;
      if (rules.limited) queue.limit = queue.quota;
    }
    setup.queues.push_back(std::move(queue));
  }
  auto cluster = engine::Cluster::Make(std::move(setup));
  if (!cluster) return tl::unexpected(cluster.error());
  std::unique_ptr<MusterJobs> made(new MusterJobs);
  made->rules_ = std::move(rules);
  made->cluster_ = std::move(*cluster);
  made->scheduler_ = std::make_unique<engine::Scheduler>(*made->cluster_);
  for (std::int64_t i = 0; i < nodes; ++i) {
    const auto node = made->cluster_->AddNode(LabNode(i, gpus_per_node));
    if (!node) return tl::unexpected(node.error());
  }
  return made;
}

void MusterJobs::Submitted(const JobPlay& play, JobIndex job) {
  const auto id = cluster_->AddJob(LabJob(play.job(job), job, rules_), play.now_ms());
  MUSTER_CHECK(id.has_value(), id.error().message);
  MUSTER_CHECK(ids_.size() == job, "jobs come in the order of the trace");
  ids_.push_back(*id);
  const auto guess = runtimes_.Guess(RuntimeKindOf(play.job(job)));
  if (guess) cluster_->SetExpected(*id, guess->likely_ms);
  if (jobs_by_id_.size() <= *id) jobs_by_id_.resize(*id + 1);
  jobs_by_id_[*id] = job;
}

void MusterJobs::Ended(const JobPlay& play, JobIndex job) {
  runtimes_.Add(RuntimeKindOf(play.job(job)), play.job(job).duration_ms);
  cluster_->RemoveJob(ids_[job]);
  ids_[job] = engine::kNone;
}

// Carries out one plan; true where somebody left and the engine has to be asked again. Leaving
// takes no time here.
bool MusterJobs::Cycle(std::int64_t now_ms) {
  const model::Plan plan = scheduler_->Cycle(now_ms);
  bool left = false;
  for (const auto& action : plan.actions) {
    changed_.push_back(jobs_by_id_[action.job]);
    if (action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow)
      continue;
    cluster_->ReportLeft({action.job, action.worker});
    left = true;
  }
  return left;
}

void MusterJobs::Decide(JobPlay& play) {
  changed_.clear();
  int cycles = 0;
  while (Cycle(play.now_ms())) {
    MUSTER_CHECK(++cycles < kMostCycles, "the engine comes to rest");
  }
  std::ranges::sort(changed_);
  const auto twice = std::ranges::unique(changed_);
  changed_.erase(twice.begin(), twice.end());
  Follow(play);
  // Sizes are given out so often at most, and not only when somebody comes or goes.
  const bool again = rules_.elastic && play.running() > 0;
  next_ms_ = again ? play.now_ms() + cluster_->policy().resize_every_ms : kNeverMs;
}

// Who leaves, then who shrinks or moves, then who starts or grows: there is room at every step.
void MusterJobs::Follow(JobPlay& play) {
  const auto size = [&](JobIndex job) -> std::int64_t {
    const auto& state = cluster_->job(ids_[job]);
    return state.Satisfied() ? state.active : 0;
  };
  for (const JobIndex job : changed_) {
    if (!play.Runs(job) || size(job) > 0) continue;
    const auto expected = cluster_->job(ids_[job]).expected_ms;
    const auto ran = play.now_ms() - play.track(job).since_ms;
    if (expected >= 0) cluster_->SetExpected(ids_[job], std::max<std::int64_t>(0, expected - ran));
    play.Stop(job);
  }
  for (const JobIndex job : changed_) {
    if (play.Runs(job) && size(job) <= play.track(job).gpus) play.Change(job, size(job));
  }
  for (const JobIndex job : changed_) {
    const auto gpus = size(job);
    if (!play.Runs(job) && gpus > 0) {
      play.Start(job, gpus);
      if (Elastic(play.job(job), rules_))
        cluster_->ReportSpeed(ids_[job], {SpeedOf(play.job(job)), static_cast<int>(gpus)});
    } else if (play.Runs(job) && gpus > play.track(job).gpus) {
      play.Change(job, gpus);
    }
  }
}

}  // namespace muster::sim

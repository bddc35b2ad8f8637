#include "timed_play.h"

#include <rapidcheck.h>

#include <algorithm>
#include <ostream>

#include "base/units.h"
#include "engine/policy.h"

namespace muster::properties {
namespace {

constexpr std::int64_t kAmple = 1'000'000 * kMilli;
constexpr int kMostCycles = 20;  // at one moment

engine::JobSpeed SpeedOf(const TimedJob& job) {
  engine::GoodputModel model;
  model.steps.compute_b = 1.0 / 32;
  model.steps.within_a = model.steps.across_a = job.sync_s;
  model.grad_var = 1e6;  // every sample is worth it
  model.limits = {32, 32 * 64, 32, 32};
  return {model, job.most * job.gpus};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const TimedJob& job) {
  out << "at " << job.arrives_min << " min: " << job.workers;
  if (job.Elastic()) out << " to " << job.most;
  out << " x " << job.gpus << " GPUs " << job.type << " for " << job.takes_min << " min";
  if (job.sync_s >= 0) out << ", sync " << job.sync_s << " s";
  return out << "\n";
}

TimedPlay::TimedPlay(const std::vector<TimedJob>& jobs, const TimedSetup& setup)
    : jobs_(jobs), bound_(setup.bound), rigid_(setup.rigid) {
  engine::Setup made;
  auto& queue = made.queues.emplace_back();
  queue.name = "q";
  if (rigid_ == Apart::kFixed) queue.quota["gpus"] = kAmple;
  if (bound_ == Bound::kLimit) queue.limit["gpus"] = setup.gpus * kMilli;
  if (bound_ == Bound::kQuota) queue.quota["gpus"] = setup.gpus * kMilli;
  made.policy = setup.policy;
  made.policy.consolidate = false;
  cluster_ = std::move(*engine::Cluster::Make(std::move(made)));
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
  for (int i = 0; i < setup.nodes; ++i) {
    model::Node node;
    node.name = "n" + std::to_string(i);
    node.gpus.resize(4);
    const auto& type = setup.types[static_cast<std::size_t>(i) % setup.types.size()];
    for (auto& gpu : node.gpus) gpu.type = type;
    node.cpu_milli = 8'000;
    RC_ASSERT(cluster_->AddNode(node).has_value());
  }
  for (const auto& job : jobs) moments_.insert(job.arrives_min * kMinute);
}

void TimedPlay::Run(const Look& look) {
  while (!moments_.empty()) {
    now_ms_ = *moments_.begin();
    moments_.erase(moments_.begin());
    LetEnd();
    LetCome();
    int cycles = 0;
    while (Cycle(look)) RC_ASSERT(++cycles < kMostCycles);
  }
}

// Says whether somebody left.
bool TimedPlay::Cycle(const Look& look) {
  const auto plan = scheduler_->Cycle(now_ms_);
  look(plan, now_ms_);
  bool left = false;
  for (const auto& action : plan.actions) {
    if (action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow) {
      Start(index_.at(action.job));
      continue;
    }
    RC_ASSERT(action.rule == model::Rule::kResize);
    cluster_->ReportLeft({action.job, action.worker});
    left = true;
  }
  return left;
}

void TimedPlay::Start(std::size_t index) {
  if (!started_.emplace(index, now_ms_).second) return;
  const TimedJob& job = jobs_[index];
  const auto end = now_ms_ + job.takes_min * kMinute;
  ends_.insert({end, index});
  moments_.insert(end);
  if (job.sync_s < 0) return;
  cluster_->ReportSpeed(ids_.at(index), SpeedOf(job));
  cluster_->ReportResizeCost(ids_.at(index), 1'000);
}

void TimedPlay::LetEnd() {
  while (!ends_.empty() && ends_.begin()->first <= now_ms_) {
    cluster_->RemoveJob(ids_.at(ends_.begin()->second));
    ends_.erase(ends_.begin());
  }
}

void TimedPlay::LetCome() {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].arrives_min * kMinute != now_ms_) continue;
    const auto id = *cluster_->AddJob(Spec(i), now_ms_);
    ids_[i] = id;
    index_[id] = i;
  }
}

model::Job TimedPlay::Spec(std::size_t index) const {
  const TimedJob& job = jobs_[index];
  model::Job spec;
  spec.name = "j" + std::to_string(index);
  spec.queue = "q";
  const bool fixed = rigid_ == Apart::kFixed && !job.Elastic();
  spec.preemptible = bound_ != Bound::kQuota && !fixed;
  spec.limits.time_ms = job.says_min * kMinute;
  auto& role = spec.roles.emplace_back();
  if (rigid_ == Apart::kNested && !job.Elastic()) {
    spec.groups.emplace_back().minimum = 1;
    spec.groups.emplace_back().parent = 0;
    role.group = 1;
  } else {
    spec.groups.emplace_back();
  }
  spec.groups.back().minimum = job.workers;
  role.count = std::max(job.workers, job.most);
  role.request.gpu = {model::GpuKind::kWhole, job.gpus, 0, 0};
  role.request.cpu_milli = 1'500 * job.gpus;
  if (!job.type.empty()) role.gpu_types = {job.type};
  return spec;
}

}  // namespace muster::properties

#include "sim/case_run.h"

#include <bit>
#include <cmath>
#include <memory>
#include <utility>

#include "engine/cycle.h"
#include "sim/case_judge.h"
#include "sim/case_rules.h"

namespace muster::sim {

using engine::Cluster;
using engine::JobId;
using engine::NodeId;
using engine::WorkerRef;
using engine::WorkerState;

namespace {

constexpr std::int64_t kStartMs = 1'000'000'000'000;
constexpr int kMostCycles = 50;  // until a cluster must have settled

class Player {
 public:
  explicit Player(const Case& story) : story_(story), past_use_(story.past_use) {}

  Result<std::vector<std::string>> Play(const engine::Policy& policy);

 private:
  Result<void> Do(const CaseNode& node);
  Result<void> Do(const CaseJob& job);
  Result<void> Do(const CaseCycle& cycle);
  Result<void> Do(const CaseAdvance& advance);
  Result<void> Do(const CaseOrder& order);
  Result<void> Do(const CaseSpeed& speed);
  template <typename Expectation>
  Result<void> Do(const Expectation& want) {
    for (const auto& difference : judge_->Differences(want)) {
      differences_.push_back("line " + std::to_string(line_) + ": " + difference);
    }
    return {};
  }

  void ObeyJob(CaseOrderKind kind, JobId job);
  Result<std::uint64_t> DevicesOf(const CaseJob& job, const CasePlace& place, NodeId node) const;
  void LetLeave();
  model::Plan RunCycle();
  void TellPastUse();

  const Case& story_;
  std::map<std::string, std::int64_t> past_use_;
  std::map<std::string, engine::JobSpeed::Models> speeds_;  // by job: what it told
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::unique_ptr<CaseJudge> judge_;
  std::int64_t now_ms_ = kStartMs;
  int line_ = 0;
  std::vector<std::string> differences_;
};

Result<void> Player::Do(const CaseNode& node) {
  const auto added = cluster_->AddNode(node.spec);
  if (!added) return tl::unexpected(added.error());
  return {};
}

// The GPUs as the case states them, or the lowest that nobody has.
Result<std::uint64_t> Player::DevicesOf(const CaseJob& job, const CasePlace& place,
                                        NodeId node) const {
  const auto& gpu = job.spec.roles[0].request.gpu;
  const auto count = gpu.kind == model::GpuKind::kNone ? 0 : gpu.devices;
  const auto& state = cluster_->nodes().node(node);
  std::uint64_t open = 0, mask = 0;
  for (auto b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
    open |= cluster_->nodes().bank(b).unoccupied[static_cast<std::size_t>(engine::Mode::kFree)];
    mask |= cluster_->nodes().bank(b).mask;
  }
  std::uint64_t devices = place.devices;
  for (int i = 0; !place.chosen && i < count; ++i) devices |= open & (~open + 1), open &= open - 1;
  if (std::popcount(devices) != count || (devices & ~mask) != 0) {
    return Fail(ErrorCode::kInvalid, job.spec.name + " cannot run on " + place.node + " like that",
                "a worker of it has " + std::to_string(count) + " GPUs");
  }
  const bool whole = gpu.kind == model::GpuKind::kWhole;
  if (whole && place.chosen && (devices & ~open) != 0) {
    return Fail(ErrorCode::kInvalid, job.spec.name + " runs on a GPU that somebody else has");
  }
  return devices;
}

Result<void> Player::Do(const CaseJob& job) {
  const auto id = cluster_->AddJob(job.spec, now_ms_ - job.age_ms);
  if (!id) return tl::unexpected(id.error());
  if (job.checkpoint_ms_ago) cluster_->ReportCheckpoint(*id, now_ms_ - *job.checkpoint_ms_ago);
  for (std::uint32_t i = 0; i < job.running.size(); ++i) {
    const NodeId node = cluster_->FindNode(job.running[i].node);
    if (node == engine::kNone) {
      return Fail(ErrorCode::kNotFound, "there is no node " + job.running[i].node,
                  "nodes come before the jobs that run on them");
    }
    const auto devices = DevicesOf(job, job.running[i], node);
    if (!devices) return tl::unexpected(devices.error());
    auto reported = cluster_->ReportWorker({*id, i}, WorkerState::kRunning, node, *devices,
                                           now_ms_ - job.started_ms_ago);
    if (!reported) return reported;
  }
  return {};
}

void Player::LetLeave() {
  for (JobId id = 0; id < cluster_->job_slots(); ++id) {
    const auto count = static_cast<std::uint32_t>(cluster_->job(id).workers.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const WorkerRef ref{id, i};
      if (cluster_->worker(ref).place.state == WorkerState::kLeaving) cluster_->ReportLeft(ref);
    }
  }
}

model::Plan Player::RunCycle() {
  model::Plan plan = scheduler_->Cycle(now_ms_);
  judge_->Note(plan, now_ms_);
  return plan;
}

Result<void> Player::Do(const CaseCycle& cycle) {
  if (cycle.settle) {
    for (int i = 0; i < kMostCycles; ++i) {
      LetLeave();
      if (RunCycle().empty()) return {};
    }
    differences_.push_back("line " + std::to_string(line_) + ": not settled after " +
                           std::to_string(kMostCycles) + " cycles");
    return {};
  }
  for (std::int64_t i = 0; i < cycle.count; ++i) {
    if (!cycle.early) LetLeave();
    RunCycle();
  }
  return {};
}

void Player::TellPastUse() {
  for (const auto& [name, gpu_ms] : past_use_) {
    const auto queue = cluster_->queues().Find(name);
    if (queue != engine::kNone) cluster_->SetPastUse(queue, gpu_ms);
  }
}

Result<void> Player::Do(const CaseAdvance& advance) {
  now_ms_ += advance.ms;
  const auto half_life = cluster_->policy().decay_half_life_ms;
  if (half_life == 0) return {};
  const auto left = std::exp2(-static_cast<double>(advance.ms) / static_cast<double>(half_life));
  for (auto& [name, gpu_ms] : past_use_) {
    gpu_ms = std::llround(static_cast<double>(gpu_ms) * left);
  }
  TellPastUse();
  return {};
}

void Player::ObeyJob(CaseOrderKind kind, JobId job) {
  switch (kind) {
    case CaseOrderKind::kHold:
    case CaseOrderKind::kRelease:
      cluster_->SetHold(job, kind == CaseOrderKind::kHold);
      break;
    case CaseOrderKind::kCheckpoint:
      cluster_->ReportCheckpoint(job, now_ms_);
      break;
    default:
      cluster_->RemoveJob(job);
      break;
  }
}

Result<void> Player::Do(const CaseOrder& order) {
  const bool of_job = order.kind >= CaseOrderKind::kFinish;
  if (of_job) {
    const JobId job = cluster_->FindJob(order.name);
    if (job == engine::kNone) return Fail(ErrorCode::kNotFound, "there is no job " + order.name);
    ObeyJob(order.kind, job);
    return {};
  }
  const NodeId node = cluster_->FindNode(order.name);
  if (node == engine::kNone) return Fail(ErrorCode::kNotFound, "there is no node " + order.name);
  if (order.kind == CaseOrderKind::kDown || order.kind == CaseOrderKind::kUp) {
    cluster_->SetNodeUp(node, order.kind == CaseOrderKind::kUp);
  } else {
    cluster_->SetNodeCordoned(node, order.kind != CaseOrderKind::kUncordon,
                              order.kind == CaseOrderKind::kDrain);
  }
  return {};
}

// Every GPU takes the same samples at each step, and all of them are worth the same. The largest
// batch is that of its largest size.
Result<void> Player::Do(const CaseSpeed& speed) {
  constexpr int kSamples = 32;
  constexpr double kNoise = 1e6;
  const JobId job = cluster_->FindJob(speed.name);
  if (job == engine::kNone) return Fail(ErrorCode::kNotFound, "there is no job " + speed.name);
  const auto seconds = [](std::int64_t ms) { return static_cast<double>(ms) / 1000; };
  engine::GoodputModel model;
  model.steps.compute_b = seconds(speed.step_ms) / kSamples;
  model.steps.within_a = seconds(speed.sync_ms);
  model.steps.across_a = seconds(speed.across_ms);
  model.grad_var = kNoise;
  const auto& state = cluster_->job(job);
  const auto& gpu = cluster_->shapes()[state.workers[0].shape].spec.request.gpu;
  const int most_gpus = static_cast<int>(state.workers.size()) * gpu.devices;
  model.limits = {kSamples, kSamples * most_gpus, kSamples, kSamples};
  auto& models = speeds_[speed.name];
  models[speed.type] = model;
  cluster_->ReportSpeed(job, {models, most_gpus});
  return {};
}

Result<std::vector<std::string>> Player::Play(const engine::Policy& policy) {
  engine::Setup setup = story_.setup;
  setup.policy = policy;
  auto made = Cluster::Make(std::move(setup));
  if (!made) return tl::unexpected(made.error());
  cluster_ = std::move(*made);
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
  judge_ = std::make_unique<CaseJudge>(*cluster_);
  TellPastUse();
  for (const auto& step : story_.steps) {
    line_ = step.line;
    const auto done = std::visit([this](const auto& act) { return Do(act); }, step.act);
    if (done) continue;
    Error error = done.error();
    error.message = story_.id + ":" + std::to_string(line_) + ": " + error.message;
    return tl::unexpected(error);
  }
  return std::move(differences_);
}

}  // namespace

Result<std::vector<std::string>> PlayCase(const Case& story, const engine::Policy& policy) {
  return Player(story).Play(policy);
}

Result<CaseResult> RunCase(const Case& story) {
  CaseResult result;
  result.id = story.id;
  auto with = PlayCase(story, story.setup.policy);
  if (!with) return tl::unexpected(with.error());
  result.differences = std::move(*with);
  const CaseRule* rule = FindCaseRule(story.rule);
  if (rule == nullptr || !result.passed()) return result;
  engine::Policy policy = story.setup.policy;
  rule->off(policy);
  const auto without = PlayCase(story, policy);
  if (!without) return tl::unexpected(without.error());
  if (without->empty()) {
    result.differences.push_back("holds with the rule " + story.rule +
                                 " switched off too, so that it does not prove it");
  }
  return result;
}

}  // namespace muster::sim

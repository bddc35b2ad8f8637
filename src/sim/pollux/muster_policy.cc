#include "sim/pollux/muster_policy.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "model/job.h"
#include "model/node.h"
#include "model/queue.h"

namespace muster::sim {
namespace {

constexpr int kMostGpus = 64;    // the profiles know no more
constexpr int kMostRounds = 16;  // of an engine that changes its mind; two or three are usual
constexpr const char* kQueue = "lab";

model::Node MakeNode(int index, int gpus) {
  model::Node node;
  node.name = "node-" + std::to_string(index);
  model::Gpu gpu;
  gpu.type = "gpu";
  gpu.memory_bytes = 1;
  node.gpus.assign(static_cast<std::size_t>(gpus), gpu);
  return node;
}

model::Job MakeJob(const TrainJob& job) {
  const auto& app = job.application();
  model::Job out;
  out.name = job.request().name;
  out.queue = kQueue;
  model::Group group;
  group.minimum = 1;
  out.groups.push_back(group);
  model::Role role;
  role.name = "worker";
  role.count =
      job.request().fixed_batch ? 1 : std::min(kMostGpus, app.max_batch() / app.min_local());
  role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
  out.roles.push_back(role);
  out.checkpoint.restart_cost_ms = TrainJob::kRestartSeconds * 1000;
  return out;
}

}  // namespace

MusterPolicy::MusterPolicy(int nodes, int gpus_per_node, const engine::Policy& policy) {
  engine::Setup setup;
  setup.policy = policy;
  model::Queue queue;
  queue.name = kQueue;
  setup.queues.push_back(queue);
  auto made = engine::Cluster::Make(std::move(setup));
  MUSTER_CHECK(made.has_value(), "one queue is a tree");
  cluster_ = std::move(*made);
  for (int i = 0; i < nodes; ++i) {
    const auto added = cluster_->AddNode(MakeNode(i, gpus_per_node));
    MUSTER_CHECK(added.has_value(), "nodes of one kind are nodes");
  }
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
}

void MusterPolicy::Know(const Scene& scene) {
  const std::unordered_set<const TrainJob*> there(scene.jobs.begin(), scene.jobs.end());
  std::erase_if(known_, [&](const auto& known) {
    if (there.contains(known.first)) return false;
    cluster_->RemoveJob(known.second);
    return true;
  });
  for (const auto* job : scene.jobs) {
    const auto [found, added] = known_.try_emplace(job);
    if (added) {
      const auto id = cluster_->AddJob(MakeJob(*job), job->request().submit_s * 1000);
      MUSTER_CHECK(id.has_value(), "names of a workload differ");
      found->second = *id;
    }
    const auto* known = cluster_->job(found->second).speed.get();
    const bool news =
        job->model() && (known == nullptr || known->models().at("") != *job->model() ||
                         known->most_gpus() != job->most_gpus_seen());
    if (news) cluster_->ReportSpeed(found->second, {*job->model(), job->most_gpus_seen()});
  }
}

void MusterPolicy::Settle(std::int64_t now_ms) {
  for (int round = 0; round < kMostRounds; ++round) {
    const auto plan = scheduler_->Cycle(now_ms);
    if (plan.empty()) return;
    for (const auto& action : plan.actions) {
      if (action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow)
        continue;
      cluster_->ReportLeft({action.job, action.worker});
    }
  }
}

Allocation MusterPolicy::Decide(const Scene& scene) {
  Know(scene);
  Settle(scene.now_s * 1000);
  Allocation allocation;
  for (const auto* job : scene.jobs) {
    auto& nodes = allocation.emplace_back();
    for (const auto& worker : cluster_->job(known_.at(job)).workers) {
      if (!worker.place.Holds()) continue;
      nodes.push_back(static_cast<int>(cluster_->nodes().bank(worker.place.bank).node));
    }
    std::ranges::sort(nodes);
  }
  return allocation;
}

}  // namespace muster::sim

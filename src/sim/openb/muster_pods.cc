#include "sim/openb/muster_pods.h"

#include <bit>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/job.h"

namespace muster::sim {
namespace {

constexpr const char* kQueue = "pods";
constexpr std::int64_t kMib = 1LL << 20;

std::string TypeName(std::int64_t type) { return "type-" + std::to_string(type); }

model::Node NodeOf(const NodeState& state, std::size_t index) {
  model::Node node;
  node.name = "node-" + std::to_string(index);
  node.cpu_milli = state.cpu_milli;
  node.memory_bytes = state.memory_mib * kMib;
  model::Gpu gpu;
  gpu.type = TypeName(state.type);
  gpu.memory_bytes = kWholeGpu;  // so that a share is a number of bytes without rest
  node.gpus.assign(state.gpus, gpu);
  return node;
}

model::Job JobOf(const PodShape& pod, std::int64_t number) {
  model::Job job;
  job.name = "pod-" + std::to_string(number);
  job.queue = kQueue;
  job.preemptible = false;
  job.groups.emplace_back().minimum = 1;
  auto& role = job.roles.emplace_back();
  role.name = "pod";
  role.request.cpu_milli = pod.cpu_milli;
  role.request.memory_bytes = pod.memory_mib * kMib;
  if (pod.gpus == 0) return job;
  role.request.gpu.kind = pod.shares() ? model::GpuKind::kShare : model::GpuKind::kWhole;
  role.request.gpu.devices = static_cast<int>(pod.gpus);
  role.request.gpu.share_milli = pod.shares() ? pod.gpu_milli : 0;
  if (pod.types == ~0ULL) return job;
  for (auto rest = pod.types; rest != 0; rest &= rest - 1) {
    role.gpu_types.push_back(TypeName(std::countr_zero(rest)));
  }
  return job;
}

}  // namespace

void MusterPods::Build(std::span<const NodeState> nodes) {
  engine::Setup setup;
  setup.policy = policy_;
  auto& queue = setup.queues.emplace_back();
  queue.name = kQueue;
  queue.quota["gpus"] = model::kUnlimited;
  auto cluster = engine::Cluster::Make(std::move(setup));
  MUSTER_CHECK(cluster.has_value(), "a queue without limits is a queue");
  cluster_ = std::move(*cluster);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto added = cluster_->AddNode(NodeOf(nodes[i], i));
    MUSTER_CHECK(added.has_value(), "a node of the trace is a node");
  }
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
}

void MusterPods::Arrives(std::span<const NodeState> nodes, std::span<const PodShape> shapes,
                         std::uint32_t shape) {
  if (!cluster_) Build(nodes);
  ++arrived_;
  const auto added = cluster_->AddJob(JobOf(shapes[shape], arrived_), arrived_);
  MUSTER_CHECK(added.has_value(), "a pod of the trace is a job");
  newest_ = *added;
  cluster_->SetHold(newest_, true);
}

std::optional<PodPlace> MusterPods::Choose(std::span<const NodeState> /*nodes*/,
                                           std::span<const PodShape> /*shapes*/,
                                           std::uint32_t /*shape*/) {
  cluster_->SetHold(newest_, false);
  scheduler_->Cycle(arrived_);
  const engine::Place& place = cluster_->worker({newest_, 0}).place;
  if (!place.Holds()) {
    cluster_->SetHold(newest_, true);
    return std::nullopt;
  }
  const auto gpu = place.devices == 0 ? 0 : std::countr_zero(place.devices);
  return PodPlace{cluster_->nodes().bank(place.bank).node, static_cast<std::uint32_t>(gpu)};
}

}  // namespace muster::sim

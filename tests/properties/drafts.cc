#include "drafts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/units.h"

namespace muster::properties {
namespace {

constexpr std::int64_t kGi = 1LL << 30;
constexpr std::int64_t kMinuteMs = 60'000;

template <typename T, std::size_t N>
const T& Choose(const std::array<T, N>& from, int index) {
  return from[static_cast<std::size_t>(index) % N];
}

constexpr std::array<EventKind, 24> kKinds = {
    EventKind::kSubmit,   EventKind::kSubmit, EventKind::kSubmit,      EventKind::kSubmit,
    EventKind::kSubmit,   EventKind::kSubmit, EventKind::kSubmit,      EventKind::kSubmit,
    EventKind::kSubmit,   EventKind::kSubmit, EventKind::kSubmit,      EventKind::kFinish,
    EventKind::kFinish,   EventKind::kFinish, EventKind::kTimePasses,  EventKind::kCheckpoint,
    EventKind::kNodeDown, EventKind::kNodeUp, EventKind::kCordon,      EventKind::kUncordon,
    EventKind::kDrain,    EventKind::kHold,   EventKind::kWorkerFails, EventKind::kWorkerSucceeds};

std::string_view Name(EventKind kind) {
  constexpr std::array<std::string_view, 12> kNames = {
      "submit", "finish",   "time-passes", "node-down",       "node-up",      "cordon",
      "drain",  "uncordon", "checkpoint",  "worker-succeeds", "worker-fails", "hold"};
  return kNames[static_cast<std::size_t>(kind)];
}

template <typename Draft>
std::string DescribeFields(const Draft& draft) {
  std::string out;
  for (const auto& field : Fields<Draft>()) {
    if (draft.*field.member == 0) continue;
    out += std::string(" ") + field.name + "=" + std::to_string(draft.*field.member);
  }
  return out;
}

model::WorkerRequest MakeRequest(const JobDraft& draft) {
  model::WorkerRequest request;
  auto& gpu = request.gpu;
  if (draft.request <= 5) {
    gpu = {model::GpuKind::kWhole, Choose(std::array{1, 2, 1, 4}, draft.size), 0, 0};
  } else if (draft.request <= 7) {
    const int devices = draft.request == 7 && draft.size == 3 ? 2 : 1;
    gpu = {model::GpuKind::kShare, devices,
           Choose(std::array<std::int64_t, 4>{500, 250, 700, 300}, draft.size), 0};
  } else if (draft.request == 8) {
    gpu = {model::GpuKind::kMemory, draft.size == 3 ? 2 : 1, 0,
           Choose(std::array<std::int64_t, 4>{8, 5, 13, 20}, draft.size) * kGi};
  }
  request.cpu_milli = Choose(std::array<std::int64_t, 3>{1, 2, 4}, draft.host) * kMilli;
  request.memory_bytes = Choose(std::array<std::int64_t, 3>{0, 4, 16}, draft.host) * kGi;
  return request;
}

model::TopologyWish MakeWish(int wish) {
  switch (wish) {
    case 6:
      return {"", "", "rack"};
    case 7:
      return {"", "rack", ""};
    case 8:
      return {"", "node", ""};
    case 9:
      return {"fabric", "zone", "node"};
    case 10:
      return {"", "nvlink", ""};
    case 11:
      return {"", "numa", "nvlink"};
    default:
      return {};
  }
}

void AddGroups(const JobDraft& draft, const model::Role& role, model::Job& job) {
  model::Group root;
  root.topology = MakeWish(draft.wish);
  if (draft.groups < 3) {
    root.minimum = std::max(1, role.count - draft.elastic);
    job.groups.push_back(root);
    job.roles.push_back(role);
    return;
  }
  // Two groups of workers; with groups == 5 one of them is enough.
  root.minimum = draft.groups == 5 ? 1 : 2;
  root.topology = draft.mates == 1 ? model::TopologyWish{} : root.topology;
  job.groups.push_back(root);
  for (int i = 0; i < 2; ++i) {
    model::Group group;
    group.name = "group-" + std::to_string(i);
    group.parent = 0;
    group.minimum = std::max(1, role.count - draft.elastic);
    if (draft.mates == 1) group.topology = MakeWish(draft.wish);
    job.groups.push_back(group);
    job.roles.push_back(role);
    job.roles.back().name = "role-" + std::to_string(i);
    job.roles.back().group = i + 1;
    if (draft.groups == 4) job.roles.back().priority = i;
  }
}

}  // namespace

EventKind KindOf(const EventDraft& draft) { return Choose(kKinds, draft.kind); }

engine::Policy MakePolicy(int policy) {
  engine::Policy made = policy % 2 == 0 ? engine::Policy{} : engine::CorpusPolicy();
  if (policy % 4 >= 2) made.victims_may_move = false;
  if (policy >= kThoroughPolicies) made.search_walk = 1;  // victims are sought bank by bank
  return made;
}

model::Node MakeNode(const NodeDraft& draft, std::size_t index) {
  model::Node node;
  node.name = "n" + std::to_string(index);
  const int count = Choose(std::array{2, 4, 1, 8, 0}, draft.gpus);
  for (int i = 0; i < count; ++i) {
    const bool second_half = i >= (count + 1) / 2;
    model::Gpu gpu;
    gpu.type = draft.type == 1 || (draft.type == 2 && second_half) ? "B" : "A";
    gpu.memory_bytes = (draft.memory == 1 ? 40 : 16) * kGi;
    if (draft.links == 1) gpu.nvlink_island = 0;
    if (draft.links == 2) gpu.nvlink_island = second_half ? 1 : 0;
    if (draft.links >= 2) gpu.numa = second_half ? 1 : 0;
    if (draft.links == 3) gpu.pcie_switch = i / 2;
    node.gpus.push_back(gpu);
  }
  node.sockets = draft.links >= 2 ? 2 : 1;
  if (draft.links == 2) node.nics.push_back({"nic0", 1});
  node.cpu_milli = Choose(std::array<std::int64_t, 3>{64, 8, 3}, draft.host) * kMilli;
  node.memory_bytes = Choose(std::array<std::int64_t, 3>{256, 32, 128}, draft.host) * kGi;
  node.max_workers = Choose(std::array{110, 110, 3, 1}, draft.places);
  if (draft.rack < 3) node.labels["rack"] = "r" + std::to_string(draft.rack);
  node.labels["zone"] = "z" + std::to_string(draft.rack / 2);
  return node;
}

std::vector<model::Topology> MakeTopologies() { return {{"fabric", {"zone", "rack"}}}; }

std::vector<model::Queue> MakeQueues(const std::vector<QueueDraft>& drafts) {
  std::vector<model::Queue> out;
  std::vector<int> depth;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const auto& draft = drafts[i];
    model::Queue queue;
    queue.name = "q" + std::to_string(i);
    depth.push_back(1);
    if (draft.parent > 0 && i > 0) {
      const auto parent = static_cast<std::size_t>(draft.parent - 1) % i;
      if (depth[parent] < 3) {
        queue.parent = out[parent].name;
        depth[i] = depth[parent] + 1;
      }
    }
    queue.created_order = static_cast<std::int64_t>(i);
    queue.quota["gpus"] = draft.quota * kMilli;
    if (draft.limit >= 6) queue.limit["gpus"] = (draft.quota + draft.limit - 6) * kMilli;
    if (draft.limit == 5) queue.limit["cpus"] = 4 * kMilli;
    queue.general_weight_milli = Choose(std::array<std::int64_t, 3>{1000, 3000, 0}, draft.weight);
    queue.priority = draft.priority == 3 ? 200 : 100;
    if (draft.typed == 5) queue.quota["A"] = kMilli;
    if (draft.typed == 6) queue.limit["A"] = 2 * kMilli;
    if (draft.typed == 7) queue.confinement.gpu_types = {"A"};
    if (draft.rest >= 4) queue.reclaim_min_runtime_ms = kMinuteMs;
    if (draft.rest == 5) queue.preempt_min_runtime_ms = kMinuteMs;
    out.push_back(queue);
  }
  return out;
}

std::vector<std::string> Leaves(const std::vector<model::Queue>& queues) {
  std::set<std::string> inner;
  for (const auto& queue : queues) inner.insert(queue.parent);
  std::vector<std::string> leaves;
  for (const auto& queue : queues) {
    if (!inner.contains(queue.name)) leaves.push_back(queue.name);
  }
  return leaves;
}

model::Job MakeJob(const JobDraft& draft, const std::vector<std::string>& leaves,
                   std::string name) {
  model::Job job;
  job.name = std::move(name);
  job.queue = leaves[static_cast<std::size_t>(draft.queue) % leaves.size()];
  job.priority = Choose(std::array<std::int64_t, 4>{50, 25, 75, 90}, draft.priority);
  job.preemptible = draft.fixed < 5;
  if (draft.fixed == 6) job.kind = model::JobKind::kBuild;
  job.same_device = draft.mates == 3;
  if (draft.delay == 7) job.preemption_delay_ms = kMinuteMs;
  if (draft.facts == 2) job.checkpoint.restart_cost_ms = 5000;
  if (draft.stale == 1) job.stale_grace_ms = 0;
  if (draft.stale == 2) job.stale_grace_ms.reset();
  model::Role role;
  role.name = "worker";
  role.count = draft.workers + 1;
  role.request = MakeRequest(draft);
  if (draft.types == 3) role.gpu_types = {"A"};
  if (draft.types == 4) role.gpu_types = {"B"};
  if (draft.types == 5) role.gpu_types = {"B", "A"};
  AddGroups(draft, role, job);
  return job;
}

std::string Describe(const Scene& scene) {
  std::string out = "policy " + std::to_string(scene.policy) + "\n";
  for (const auto& node : scene.nodes) out += "node" + DescribeFields(node) + "\n";
  for (const auto& queue : scene.queues) out += "queue" + DescribeFields(queue) + "\n";
  for (const auto& event : scene.events) {
    out += "event " + std::string(Name(KindOf(event))) + DescribeFields(event);
    if (KindOf(event) == EventKind::kSubmit) out += " job:" + DescribeFields(event.job);
    out += "\n";
  }
  return out;
}

}  // namespace muster::properties

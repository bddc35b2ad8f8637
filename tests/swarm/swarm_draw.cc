#include "swarm_draw.h"

#include <algorithm>

namespace muster::swarm {

using model::Framework;

namespace {

void DrawFramework(Random& random, model::Job& job) {
  switch (random.Between(0, 9)) {
    case 0:
    case 1:
      job.framework = Framework::kTorch;
      return;
    case 2:
      job.framework = Framework::kTorch;
      job.command = {"torchrun", "train.py"};
      return;
    case 3:
      job.framework = Framework::kMpi;
      return;
    case 4: {
      job.framework = Framework::kTensorflow;
      model::Role servers;
      servers.name = "ps";
      servers.request.cpu_milli = 500;
      job.roles.push_back(servers);
      job.groups[0].minimum += 1;
      return;
    }
    default:
      return;
  }
}

void DrawShape(Random& random, model::Job& job, int gpus_of_node) {
  model::Role role;
  role.name = "worker";
  role.request.cpu_milli = 100;
  model::Group group;
  group.name = "all";
  const bool several = random.Chance(55);
  role.count = several ? static_cast<int>(random.Between(2, 4)) : 1;
  group.minimum = random.Chance(50) ? role.count : static_cast<int>(random.Between(1, role.count));
  if (random.Chance(20)) {
    role.request.gpu = {model::GpuKind::kShare, 1, random.Chance(50) ? 500 : 250, 0};
  } else if (!random.Chance(10)) {
    const int most = random.Chance(20) ? gpus_of_node : std::min(2, gpus_of_node);
    role.request.gpu = {model::GpuKind::kWhole, static_cast<int>(random.Between(1, most)), 0, 0};
  }
  job.groups = {group};
  job.roles = {role};
}

}  // namespace

std::vector<model::Node> DrawNodes(Random& random) {
  std::vector<model::Node> nodes;
  const auto count = random.Between(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    model::Node node;
    node.name = "n" + std::to_string(i);
    node.cpu_milli = 64'000;
    node.memory_bytes = 1LL << 38;
    const auto gpus = random.Between(1, random.Chance(30) ? 8 : 4);
    for (std::int64_t g = 0; g < gpus; ++g) {
      model::Gpu gpu;
      gpu.type = i % 3 == 2 ? "A100" : "H100";
      gpu.memory_bytes = 80LL << 30;
      node.gpus.push_back(gpu);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<model::Queue> DrawQueues(Random& random, std::int64_t gpus) {
  std::vector<model::Queue> queues;
  const auto count = random.Between(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    model::Queue queue;
    queue.name = "q" + std::to_string(i);
    queue.created_order = i;
    queue.quota["gpus"] = random.Between(0, gpus) * 1'000;
    if (random.Chance(15)) queue.limit["gpus"] = random.Between(1, gpus) * 1'000;
    if (random.Chance(20)) queue.preempt_min_runtime_ms = random.Between(0, 20'000);
    queues.push_back(std::move(queue));
  }
  return queues;
}

engine::PolicyFile DrawPolicy(Random& random) {
  engine::PolicyFile file;
  for (const char* name : {"shrink", "consolidate", "reclaim", "preempt", "grow", "by_goodput",
                           "keep_promises", "victims_may_move", "compare_lost_work"}) {
    if (random.Chance(25)) file.settings.emplace(name, "off");
  }
  if (random.Chance(25)) {
    file.settings.emplace("move_limit", std::to_string(random.Between(0, 4)));
  }
  return file;
}

model::Job DrawJob(Random& random, const std::vector<model::Queue>& queues, int gpus_of_node,
                   const std::vector<std::uint64_t>& known) {
  model::Job job;
  job.name = "job" + std::to_string(random.Between(0, 9));
  job.queue = queues[static_cast<std::size_t>(
                         random.Between(0, static_cast<std::int64_t>(queues.size()) - 1))]
                  .name;
  job.command = {"python3", "train.py"};
  job.priority = random.Between(0, 9) * 10;
  if (random.Chance(10)) job.kind = model::JobKind::kBuild, job.preemptible = false;
  DrawShape(random, job, gpus_of_node);
  DrawFramework(random, job);
  job.checkpoint.grace_ms = random.Between(0, 30'000);
  if (random.Chance(40)) job.limits.retries = static_cast<int>(random.Between(1, 3));
  if (random.Chance(25)) job.limits.time_ms = random.Between(1'000, 90'000);
  if (random.Chance(20)) {
    job.array = model::ArrayRange{1, random.Between(2, 6), random.Between(0, 3)};
  }
  const std::size_t most = random.Chance(20) ? 2 : random.Chance(25) ? 1 : 0;
  for (std::size_t i = 0; i < most && !known.empty(); ++i) {
    const auto back = random.Between(1, std::min<std::int64_t>(8, std::ssize(known)));
    const auto after = known[known.size() - static_cast<std::size_t>(back)];
    job.after.push_back(
        {std::to_string(after), static_cast<model::AfterCondition>(random.Between(0, 2))});
  }
  if (random.Chance(30)) job.stale_grace_ms = 5'000;
  return job;
}

}  // namespace muster::swarm

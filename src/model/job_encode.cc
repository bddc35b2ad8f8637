#include <string>
#include <utility>

#include "base/units.h"
#include "model/fields.h"
#include "model/job_codec.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

DocNode DurationNode(std::int64_t ms) { return TextNode(FormatDurationMs(ms)); }

DocNode PriorityNode(std::int64_t priority) {
  for (std::size_t i = 0; i < kPriorityValues.size(); ++i) {
    if (kPriorityValues[i] == priority) return TextNode(kPriorityNames[i]);
  }
  return NumberNode(priority);
}

DocNode WishNode(const TopologyWish& wish) {
  auto map = MapNode();
  if (!wish.topology.empty()) Put(map, "name", TextNode(wish.topology));
  if (!wish.require.empty()) Put(map, "require", TextNode(wish.require));
  if (!wish.prefer.empty()) Put(map, "prefer", TextNode(wish.prefer));
  return map;
}

DocNode RequestNode(const WorkerRequest& request) {
  auto map = MapNode();
  const auto& gpu = request.gpu;
  switch (gpu.kind) {
    case GpuKind::kNone:
      break;
    case GpuKind::kWhole:
      Put(map, "gpus", NumberNode(gpu.devices));
      break;
    case GpuKind::kShare:
      Put(map, "gpus", PlainNode(FormatMilli(gpu.share_milli)));
      break;
    case GpuKind::kMemory:
      Put(map, "gpu_memory", TextNode(FormatBytes(gpu.memory_bytes)));
      break;
  }
  if (gpu.kind != GpuKind::kWhole && gpu.devices > 1) {
    Put(map, "gpu_devices", NumberNode(gpu.devices));
  }
  if (request.cpu_milli > 0) Put(map, "cpus", PlainNode(FormatMilli(request.cpu_milli)));
  if (request.memory_bytes > 0) Put(map, "memory", TextNode(FormatBytes(request.memory_bytes)));
  for (const auto& [name, count] : request.other) Put(map, name, NumberNode(count));
  return map;
}

int RolesIn(const Job& job, std::size_t group) {
  int roles = 0;
  for (const auto& role : job.roles) roles += static_cast<std::size_t>(role.group) == group ? 1 : 0;
  return roles;
}

// Whether the groups are those that the reader makes by itself from the roles.
bool GroupsAreImplied(const Job& job) {
  if (job.roles.size() == 1) return job.groups.size() == 1;
  if (job.groups.size() != job.roles.size() + 1) return false;
  if (job.groups[0].minimum != static_cast<int>(job.roles.size())) return false;
  for (std::size_t i = 0; i < job.roles.size(); ++i) {
    const auto& group = job.groups[i + 1];
    if (job.roles[i].group != static_cast<int>(i + 1) || group.name != job.roles[i].name ||
        group.parent != 0 || group.topology != TopologyWish{}) {
      return false;
    }
  }
  return true;
}

// A leaf with one role keeps its minimum in the role's count; one with several keeps it itself.
DocNode CountNode(const Job& job, const Role& role) {
  const auto group = static_cast<std::size_t>(role.group);
  const int minimum = job.groups[group].minimum;
  if (RolesIn(job, group) > 1 || minimum == role.count) return NumberNode(role.count);
  return TextNode(std::to_string(minimum) + ".." + std::to_string(role.count));
}

DocNode RoleNode(const Job& job, const Role& role) {
  auto map = MapNode();
  Put(map, "count", CountNode(job, role));
  if (role.request != WorkerRequest{}) Put(map, "resources", RequestNode(role.request));
  if (!role.gpu_types.empty()) Put(map, "gpu_types", TextListNode(role.gpu_types));
  if (role.node_names) Put(map, "node_names", TextListNode(*role.node_names));
  if (role.priority != 0) Put(map, "priority", NumberNode(role.priority));
  return map;
}

DocNode GroupsNode(const Job& job) {
  auto list = ListNode();
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    const auto& group = job.groups[i];
    auto map = MapNode();
    Put(map, "name", TextNode(i == 0 ? kRootGroup : group.name));
    if (group.parent > 0) {
      Put(map, "parent", TextNode(job.groups[static_cast<std::size_t>(group.parent)].name));
    }
    if (RolesIn(job, i) != 1) Put(map, "minimum", NumberNode(group.minimum));
    auto roles = ListNode();
    for (const auto& role : job.roles) {
      if (static_cast<std::size_t>(role.group) == i) roles.children.push_back(TextNode(role.name));
    }
    if (!roles.children.empty()) Put(map, "roles", std::move(roles));
    if (i > 0 && group.topology != TopologyWish{}) {
      Put(map, "topology", WishNode(group.topology));
    }
    list.children.push_back(std::move(map));
  }
  return list;
}

void PutCheckpoint(const Checkpoint& checkpoint, DocNode& out) {
  const Checkpoint defaults;
  if (checkpoint == defaults) return;
  auto map = MapNode();
  if (!checkpoint.dir.empty()) Put(map, "dir", TextNode(checkpoint.dir));
  if (!checkpoint.signal.empty()) Put(map, "signal", TextNode(checkpoint.signal));
  if (checkpoint.grace_ms != defaults.grace_ms) {
    Put(map, "grace", DurationNode(checkpoint.grace_ms));
  }
  if (checkpoint.every_ms != 0) Put(map, "every", DurationNode(checkpoint.every_ms));
  if (checkpoint.restart_cost_ms != 0) {
    Put(map, "restart_cost", DurationNode(checkpoint.restart_cost_ms));
  }
  Put(out, "checkpoint", std::move(map));
}

void PutLimits(const Limits& limits, DocNode& out) {
  if (limits == Limits{}) return;
  auto map = MapNode();
  if (limits.time_ms != 0) Put(map, "time", DurationNode(limits.time_ms));
  if (limits.retries != 0) Put(map, "retries", NumberNode(limits.retries));
  if (limits.idle_ms != 0) Put(map, "idle", DurationNode(limits.idle_ms));
  Put(out, "limits", std::move(map));
}

void PutProgram(const Job& job, DocNode& out) {
  if (job.framework != Framework::kNone) Put(out, "framework", TextNode(NameOf(job.framework)));
  if (!job.command.empty()) Put(out, "command", TextListNode(job.command));
  if (!job.workdir.empty()) Put(out, "workdir", TextNode(job.workdir));
  if (!job.image.empty()) Put(out, "image", TextNode(job.image));
  if (job.terminal) Put(out, "terminal", BoolNode(true));
  if (!job.job_template.empty()) Put(out, "template", TextNode(job.job_template));
  if (!job.env.empty()) Put(out, "env", TextMapNode(job.env));
}

void PutLife(const Job& job, DocNode& out) {
  PutCheckpoint(job.checkpoint, out);
  PutLimits(job.limits, out);
  if (!job.after.empty()) {
    auto list = ListNode();
    for (const auto& dependency : job.after) {
      list.children.push_back(
          TextNode(dependency.job + ":" + std::string(NameOf(dependency.condition))));
    }
    Put(out, "after", std::move(list));
  }
  if (job.array) {
    auto text = std::to_string(job.array->first) + "-" + std::to_string(job.array->last);
    if (job.array->at_once != 0) text += "%" + std::to_string(job.array->at_once);
    Put(out, "array", TextNode(text));
  }
  if (job.preemption_delay_ms != 0) {
    Put(out, "preemption_delay", DurationNode(job.preemption_delay_ms));
  }
  if (!job.stale_grace_ms) {
    Put(out, "stale_grace", TextNode("never"));
  } else if (*job.stale_grace_ms != *Job().stale_grace_ms) {
    Put(out, "stale_grace", DurationNode(*job.stale_grace_ms));
  }
}

}  // namespace

DocNode JobToNode(const Job& job) {
  auto out = MapNode();
  Put(out, "name", TextNode(job.name));
  Put(out, "queue", TextNode(job.queue));
  Put(out, "kind", TextNode(NameOf(job.kind)));
  Put(out, "priority", PriorityNode(job.priority));
  if (job.preemptible != PreemptibleByDefault(job)) {
    Put(out, "preemptible", BoolNode(job.preemptible));
  }
  auto roles = MapNode();
  for (const auto& role : job.roles) Put(roles, role.name, RoleNode(job, role));
  Put(out, "roles", std::move(roles));
  if (!job.groups.empty() && job.groups[0].topology != TopologyWish{}) {
    Put(out, "topology", WishNode(job.groups[0].topology));
  }
  if (!GroupsAreImplied(job)) Put(out, "groups", GroupsNode(job));
  if (!job.nodes.empty()) Put(out, "nodes", TextMapNode(job.nodes));
  if (job.same_device) Put(Put(out, "share", MapNode()), "same_device", TextNode("allow"));
  PutProgram(job, out);
  if (!job.labels.empty()) Put(out, "labels", TextMapNode(job.labels));
  PutLife(job, out);
  return out;
}

}  // namespace muster::model

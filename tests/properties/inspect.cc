#include "inspect.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/units.h"

namespace muster::properties {

using engine::NodeId;
using engine::QueueId;
using engine::WorkerRef;
using engine::WorkerState;
using model::ActionKind;
using model::GpuKind;
using model::Rule;

namespace {

// A worker that holds a place or has not left it yet.
struct Placed {
  const JobFact* job = nullptr;
  const model::Role* role = nullptr;
  WorkerRef ref;
  NodeId node = 0;
  std::uint64_t devices = 0;
  bool holds = false;
};

std::vector<Placed> ListPlaced(const World& world) {
  std::vector<Placed> out;
  const auto& cluster = world.cluster();
  for (const auto& fact : world.jobs()) {
    const auto id = cluster.FindJob(fact.spec.name);
    const auto& workers = cluster.job(id).workers;
    for (std::uint32_t i = 0; i < workers.size(); ++i) {
      const auto& place = workers[i].place;
      const bool holds = place.state == WorkerState::kRunning || place.state == WorkerState::kStuck;
      if (!holds && place.state != WorkerState::kLeaving) continue;
      out.push_back({&fact,
                     &fact.spec.roles[workers[i].role],
                     {id, i},
                     cluster.nodes().bank(place.bank).node,
                     place.devices,
                     holds});
    }
  }
  return out;
}

const model::Gpu& FirstGpu(const World& world, const Placed& at) {
  return world.nodes()[at.node].spec.gpus[static_cast<std::size_t>(std::countr_zero(at.devices))];
}

// What its queue pays for the worker at its place, by the name of the resource.
model::Amounts ChargeOf(const World& world, const Placed& at) {
  model::Amounts out;
  const auto& request = at.role->request;
  out["cpus"] = request.cpu_milli;
  out["memory"] = request.memory_bytes;
  if (request.gpu.kind == GpuKind::kNone) return out;
  const auto& gpu = FirstGpu(world, at);
  std::int64_t each = kMilli;
  if (request.gpu.kind == GpuKind::kShare) each = request.gpu.share_milli;
  if (request.gpu.kind == GpuKind::kMemory) {
    each = (100 * request.gpu.memory_bytes + gpu.memory_bytes - 1) / gpu.memory_bytes * 10;
  }
  out["gpus"] = each * request.gpu.devices;
  out[gpu.type] = each * request.gpu.devices;
  return out;
}

bool IsStart(const model::Action& action) {
  return action.kind == ActionKind::kStart || action.kind == ActionKind::kGrow;
}

std::string NameOf(const World& world, const Placed& at) {
  return world.cluster().WorkerName(at.ref) + " on " + world.nodes()[at.node].spec.name;
}

std::string CheckDevices(const World& world, const std::vector<Placed>& all) {
  struct Use {
    std::int64_t bytes = 0;
    int whole = 0, shared = 0;
    std::set<engine::JobId> jobs;
  };
  std::map<std::pair<NodeId, int>, Use> uses;
  for (const auto& at : all) {
    const auto& gpu = at.role->request.gpu;
    if (gpu.kind == GpuKind::kNone) {
      if (at.devices != 0) return NameOf(world, at) + " has GPUs it did not ask for";
      continue;
    }
    if (std::popcount(at.devices) != gpu.devices) {
      return NameOf(world, at) + " has a wrong number of GPUs";
    }
    for (std::uint64_t rest = at.devices; rest != 0; rest &= rest - 1) {
      const int index = std::countr_zero(rest);
      const auto& specs = world.nodes()[at.node].spec.gpus;
      if (static_cast<std::size_t>(index) >= specs.size()) return NameOf(world, at) + ": no GPU";
      const auto& spec = specs[static_cast<std::size_t>(index)];
      if (spec.type != FirstGpu(world, at).type) return NameOf(world, at) + ": mixed types";
      Use& use = uses[{at.node, index}];
      const bool whole = gpu.kind == GpuKind::kWhole;
      (whole ? use.whole : use.shared) += 1;
      if (gpu.kind == GpuKind::kShare) use.bytes += spec.memory_bytes * gpu.share_milli / kMilli;
      if (gpu.kind == GpuKind::kMemory) use.bytes += gpu.memory_bytes;
      const bool alone = !at.holds || use.jobs.insert(at.ref.job).second;
      if (!alone && !at.job->spec.same_device) {
        return NameOf(world, at) + ": two members of one job on device " + std::to_string(index);
      }
      if (use.whole > 1 || (use.whole > 0 && use.shared > 0) || use.bytes > spec.memory_bytes) {
        return NameOf(world, at) + ": device " + std::to_string(index) + " is taken twice";
      }
    }
  }
  return "";
}

std::string CheckHosts(const World& world, const std::vector<Placed>& all) {
  struct Use {
    std::int64_t cpu_milli = 0, memory_bytes = 0;
    int workers = 0;
  };
  std::map<NodeId, Use> uses;
  for (const auto& at : all) {
    Use& use = uses[at.node];
    const auto& spec = world.nodes()[at.node].spec;
    use.cpu_milli += at.role->request.cpu_milli;
    use.memory_bytes += at.role->request.memory_bytes;
    ++use.workers;
    if (use.cpu_milli > spec.cpu_milli) return NameOf(world, at) + ": no cores left";
    if (use.memory_bytes > spec.memory_bytes) return NameOf(world, at) + ": no memory left";
    if (use.workers > spec.max_workers) return NameOf(world, at) + ": too many workers";
  }
  return "";
}

// Whether group `group` of the job, or one above it, is `above`.
bool IsInside(const model::Job& job, int group, std::size_t above) {
  while (group > static_cast<int>(above)) {
    group = job.groups[static_cast<std::size_t>(group)].parent;
  }
  return group == static_cast<int>(above);
}

// The domain a worker lies in; two workers are together if the texts are equal. Empty: it has no
// GPU, so that only its node can be compared.
std::string DomainOf(const World& world, const Placed& at, const std::string& level) {
  const auto& node = world.nodes()[at.node].spec;
  if (level == "node") return node.name;
  if (level == "numa" || level == "nvlink") {
    std::string parts;
    for (std::uint64_t rest = at.devices; rest != 0; rest &= rest - 1) {
      const auto& gpu = node.gpus[static_cast<std::size_t>(std::countr_zero(rest))];
      const auto part = std::to_string(level == "numa" ? gpu.numa : gpu.nvlink_island);
      if (parts.empty()) parts = part;
      if (parts != part) return "several of " + node.name;
    }
    return parts.empty() ? "" : node.name + "/" + parts;
  }
  const auto label = node.labels.find(level);
  return label == node.labels.end() ? "none" : node.labels.at("zone") + "/" + label->second;
}

std::string CheckDomains(const World& world, const std::vector<Placed>& all,
                         const std::set<engine::JobId>& started) {
  for (const auto job : started) {
    const auto& spec = world.FactOf(job).spec;
    for (std::size_t g = 0; g < spec.groups.size(); ++g) {
      const auto& level = spec.groups[g].topology.require;
      if (level.empty()) continue;
      std::set<std::string> domains;
      std::set<NodeId> nodes;
      for (const auto& at : all) {
        if (at.ref.job != job || !at.holds || !IsInside(spec, at.role->group, g)) continue;
        if (const auto domain = DomainOf(world, at, level); !domain.empty()) domains.insert(domain);
        nodes.insert(at.node);
      }
      const bool below_node = level == "numa" || level == "nvlink";
      if (domains.size() > 1 || domains.contains("none") || (below_node && nodes.size() > 1)) {
        return spec.name + " is not inside one " + level;
      }
    }
  }
  return "";
}

int CountActive(const World& world, engine::JobId id, const model::Job& spec, std::size_t group) {
  int active = 0, children = 0;
  for (std::size_t g = group + 1; g < spec.groups.size(); ++g) {
    if (spec.groups[g].parent != static_cast<int>(group)) continue;
    ++children;
    if (CountActive(world, id, spec, g) >= spec.groups[g].minimum) ++active;
  }
  if (children > 0) return active;
  for (const auto& worker : world.cluster().job(id).workers) {
    if (spec.roles[worker.role].group != static_cast<int>(group)) continue;
    const auto state = worker.place.state;
    active += state == WorkerState::kRunning || state == WorkerState::kSucceeded ? 1 : 0;
  }
  return active;
}

// Sums of what is held, by queue (with its ancestors) and resource.
std::map<QueueId, model::Amounts> Held(const World& world, const std::vector<Placed>& all,
                                       bool fixed_only) {
  std::map<QueueId, model::Amounts> held;
  const auto& cluster = world.cluster();
  for (const auto& at : all) {
    if (!at.holds || (fixed_only && cluster.job(at.ref.job).preemptible)) continue;
    for (QueueId q = cluster.job(at.ref.job).queue; q != 0; q = cluster.queues()[q].parent) {
      for (const auto& [name, amount] : ChargeOf(world, at)) held[q][name] += amount;
    }
  }
  return held;
}

// Compares what started with a bound, for everything that it adds to.
std::string CheckBounds(const World& world, const model::Plan& plan, bool fixed) {
  const auto all = ListPlaced(world);
  auto held = Held(world, all, fixed);
  const auto& cluster = world.cluster();
  for (const auto& action : plan.actions) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Placed& at) {
      return at.ref == WorkerRef{action.job, action.worker};
    });
    if (!IsStart(action) || found == all.end()) continue;
    if (fixed && cluster.job(action.job).preemptible) continue;
    for (const auto& [name, amount] : ChargeOf(world, *found)) {
      const auto dim = cluster.queues().FindDim(name);
      if (amount == 0 || dim >= cluster.queues().dims()) continue;
      for (QueueId q = cluster.job(action.job).queue; q != 0; q = cluster.queues()[q].parent) {
        const auto& queue = cluster.queues()[q];
        const auto bound = fixed ? queue.quota[dim] : queue.limit[dim];
        if (held[q][name] <= bound) continue;
        return cluster.job(action.job).name + " started, and " + cluster.queues().spec(q).name +
               " holds " + std::to_string(held[q][name]) + " of " + name + ", more than " +
               std::to_string(bound);
      }
    }
  }
  return "";
}

}  // namespace

std::string Oversubscribed(const World& world) {
  const auto all = ListPlaced(world);
  if (auto wrong = CheckDevices(world, all); !wrong.empty()) return wrong;
  return CheckHosts(world, all);
}

std::string Misplaced(const World& world, const model::Plan& plan) {
  const auto all = ListPlaced(world);
  std::set<engine::JobId> started;
  for (const auto& action : plan.actions) {
    if (!IsStart(action)) continue;
    started.insert(action.job);
    const auto& node = world.nodes()[action.node];
    if (!node.up || node.cordoned || node.draining) {
      return world.cluster().job(action.job).name + " started on a node that takes nobody";
    }
  }
  for (const auto& at : all) {
    const auto& types = at.role->gpu_types;
    if (at.role->request.gpu.kind == GpuKind::kNone || types.empty()) continue;
    if (std::find(types.begin(), types.end(), FirstGpu(world, at).type) == types.end()) {
      return NameOf(world, at) + ": a GPU type it did not allow";
    }
  }
  return CheckDomains(world, all, started);
}

std::string BrokenGang(const World& world, const model::Plan& plan) {
  for (const auto& action : plan.actions) {
    if (!IsStart(action)) continue;
    const auto& spec = world.FactOf(action.job).spec;
    if (CountActive(world, action.job, spec, 0) < spec.groups[0].minimum) {
      return spec.name + " was given workers and is below its minimum";
    }
  }
  return "";
}

std::string AboveLimit(const World& world, const model::Plan& plan) {
  return CheckBounds(world, plan, false);
}

std::string AboveFixedQuota(const World& world, const model::Plan& plan) {
  return CheckBounds(world, plan, true);
}

std::string ForbiddenEviction(const World& world, const model::Plan& plan) {
  for (const auto& action : plan.actions) {
    if (IsStart(action) || action.rule == Rule::kStale) continue;
    if (world.FactOf(action.job).spec.preemptible &&
        world.FactOf(action.job).spec.kind != model::JobKind::kBuild) {
      continue;
    }
    return world.cluster().WorkerName({action.job, action.worker}) +
           " is not preemptible: " + std::string(model::Name(action.kind)) + " by " +
           std::string(model::Name(action.rule));
  }
  return "";
}

std::string TakenFromTheWrongQueue(const World& world, const model::Plan& plan) {
  for (const auto& action : plan.actions) {
    const bool own = world.FactOf(action.job).spec.queue == world.FactOf(action.cause).spec.queue;
    const bool reclaimed = action.rule == Rule::kReclaimShare || action.rule == Rule::kReclaimQuota;
    if ((action.rule != Rule::kPreempt || own) && (!reclaimed || !own)) continue;
    return world.cluster().WorkerName({action.job, action.worker}) + " leaves by " +
           std::string(model::Name(action.rule)) + " for " + world.FactOf(action.cause).spec.name;
  }
  return "";
}

}  // namespace muster::properties

// Explanations as text: one sentence, then the facts, rendered from the structure.
#include <string>

#include "base/units.h"
#include "engine/explain.h"

namespace muster::engine {

using model::Gate;

std::string_view Name(Filter filter) {
  switch (filter) {
    case Filter::kFits:
      return "fits";
    case Filter::kDown:
      return "down";
    case Filter::kCordoned:
      return "cordoned";
    case Filter::kConfined:
      return "confined";
    case Filter::kGpuType:
      return "gpu-type";
    case Filter::kGpuMemory:
      return "gpu-memory";
    case Filter::kGpus:
      return "gpus";
    case Filter::kCores:
      return "cores";
    case Filter::kMemory:
      return "memory";
    case Filter::kCountable:
      return "countable";
    case Filter::kWorkers:
      return "workers";
  }
  return "";
}

std::string_view Name(Right right) {
  switch (right) {
    case Right::kFixed:
      return "not preemptible";
    case Right::kQuota:
      return "within its quota";
    case Right::kShare:
      return "within its fair share";
    case Right::kBeyond:
      return "beyond its fair share";
  }
  return "";
}

namespace {

// "1 worker", "2 workers".
std::string Count(std::int64_t number, const char* one) {
  return std::to_string(number) + " " + one + (number == 1 ? "" : "s");
}

// GPUs and cores as people call them; types by their names.
std::string Thousandths(std::int64_t milli, const std::string& dim) {
  const std::string name = dim == "gpus" ? "GPU" : dim == "cpus" ? "core" : dim;
  const bool plural = name != dim && milli != kMilli;
  return FormatMilli(milli) + " " + name + (plural ? "s" : "");
}

std::string Amount(const Cluster& cluster, std::size_t dim, std::int64_t value) {
  const auto& queues = cluster.queues();
  if (dim == kMemoryDim) return FormatBytes(value) + " of memory";
  if (dim >= queues.first_countable_dim()) {
    return std::to_string(value) + " " + queues.dim_name(dim);
  }
  return Thousandths(value, queues.dim_name(dim));
}

constexpr std::size_t kNodesTold = 4;

// "nodes a and b are cordoned, node c is down"
std::string OutOfService(const Cluster& cluster, const std::vector<NodeId>& nodes) {
  std::string out;
  for (const char* what : {"cordoned", "draining", "down"}) {
    std::vector<std::string> names;
    for (const NodeId id : nodes) {
      const NodeState& node = cluster.nodes().node(id);
      const char* is = !node.up ? "down" : node.draining ? "draining" : "cordoned";
      if (std::string_view(is) == what) names.push_back(cluster.nodes().spec(id).name);
    }
    if (names.empty()) continue;
    const auto count = names.size();
    if (count > kNodesTold) {
      names.resize(kNodesTold);
      names.push_back(std::to_string(count - kNodesTold) + " more");
    }
    out += (out.empty() ? "" : ", ") + std::string(count == 1 ? "node " : "nodes ");
    for (std::size_t i = 0; i < names.size(); ++i) {
      out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    }
    out += std::string(count == 1 ? " is " : " are ") + what;
  }
  return out;
}

std::string NoRoom(const Cluster& cluster, const Explanation& why) {
  const std::string workers = " of " + Count(why.workers, "worker");
  if (!why.out_of_service.empty()) {
    const std::string away = OutOfService(cluster, why.out_of_service);
    return why.fit_in_service == 0 ? away + ", and no other node can take it"
                                   : away + ", and the others could take " +
                                         std::to_string(why.fit_in_service) + workers;
  }
  if (why.fit_now >= why.workers) return "there is room by number, but no place that fits it";
  return "there is room for " + std::to_string(why.fit_now) + workers +
         ", and nobody who may be asked to leave";
}

}  // namespace

std::string Brief(const Cluster& cluster, const Explanation& why) {
  const auto of_queue = [&] { return " of queue " + cluster.queues().spec(why.stopped_by).name; };
  switch (why.gate) {
    case Gate::kNotConsidered:
      return "";
    case Gate::kOnHold:
      return "on hold";
    case Gate::kMinimum:
      return "too few workers left";
    case Gate::kLimit:
      return "limit" + of_queue();
    case Gate::kFixedQuota:
      return "quota" + of_queue();
    case Gate::kTopology:
      return "unknown topology level";
    case Gate::kPromised:
      return "room is being made";
    case Gate::kShare:
      return "no room; fair share used";
    case Gate::kReserved:
      return "room is kept for another";
    case Gate::kNeverFits:
    case Gate::kCapacity:
    case Gate::kDelay:
    case Gate::kNotProven:
      return "no room";
  }
  return "";
}

std::string Sentence(const Cluster& cluster, const Explanation& why) {
  const auto& queues = cluster.queues();
  const auto bound = [&](const std::string& what) {
    return "queue " + queues.spec(why.stopped_by).name + " holds " +
           Amount(cluster, why.resource, why.held) + " of its " + what + " of " +
           Amount(cluster, why.resource, why.bound) + ", and this would add " +
           Amount(cluster, why.resource, why.asked);
  };
  const auto alone = [&](const std::string& what) {
    return Amount(cluster, why.resource, why.asked) + " are asked for at once; queue " +
           queues.spec(why.stopped_by).name + " has a " + what + " of " +
           Amount(cluster, why.resource, why.bound);
  };
  switch (why.gate) {
    case Gate::kNotConsidered:
      return "nothing has been decided yet";
    case Gate::kOnHold:
      return "it is on hold";
    case Gate::kMinimum:
      return "fewer of its workers are left than its minimum";
    case Gate::kLimit:
      return why.beyond ? alone("limit") : bound("limit");
    case Gate::kFixedQuota:
      return "it is not preemptible, and " +
             (why.beyond ? alone("quota for such work") : bound("quota for such work"));
    case Gate::kTopology:
      return "it names a topology level that does not exist here";
    case Gate::kNeverFits:
      return "it can never start here: " + Describe(cluster, *why.shortage);
    case Gate::kCapacity:
      return NoRoom(cluster, why);
    case Gate::kPromised:
      return "room is being left for it";
    case Gate::kShare:
      return "there is no room, and it may not reclaim: " + bound("fair share");
    case Gate::kDelay:
      return "there is no room, and it is too young to cause an eviction";
    case Gate::kNotProven:
      return "there is no room; the search for somebody to leave was cut short";
    case Gate::kReserved:
      return "there is room, but it is kept for " +
             (why.kept.job != kNone ? "a larger job that came before"
                                    : "reservation " + why.kept.booking) +
             "; who is expected to end before that begins may pass: `limits: {time: ...}` says how "
             "long this one takes";
  }
  return "";
}

std::string Describe(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kFewerWorkers:
      return "ask for " + Count(change.amount, "worker");
    case Change::Kind::kOtherType:
      return "allow GPUs of type " + change.name;
    case Change::Kind::kOtherQueue:
      return "submit it to queue " + change.name;
    case Change::Kind::kRaiseLimit:
    case Change::Kind::kRaiseQuota: {
      const bool limit = change.kind == Change::Kind::kRaiseLimit;
      const bool bytes = change.resource == "memory";
      return std::string("raise the ") + (limit ? "limit" : "quota") + " of " + change.name +
             " by " +
             (bytes ? FormatBytes(change.amount) + " of memory"
                    : Thousandths(change.amount, change.resource));
    }
    case Change::Kind::kFreeGpus:
      return "free " + Count(change.amount, "GPU") + " on node " + change.name;
    case Change::Kind::kUncordon:
      return change.amount == 1 ? "run `muster node uncordon " + change.name + "`"
                                : "uncordon the nodes " + change.name;
  }
  return "";
}

std::string Render(const Cluster& cluster, const Explanation& why) {
  std::string out = cluster.job(why.job).name + " waits: " + Sentence(cluster, why) + ".\n";
  out += "  share: quota " + (why.quota == kUnlimited ? "unlimited" : FormatMilli(why.quota)) +
         ", held " + FormatMilli(why.queue_held) + ", fair share " + FormatMilli(why.share) + "; " +
         Count(why.jobs_ahead, "job") + " ahead in its queue\n";
  std::string nodes;
  for (std::size_t f = 0; f < kFilters; ++f) {
    if (why.nodes[f] == 0) continue;
    nodes += (nodes.empty() ? "" : ", ") + std::string(Name(static_cast<Filter>(f))) + " " +
             std::to_string(why.nodes[f]);
  }
  if (!nodes.empty()) out += "  nodes: " + nodes + "\n";
  if (why.nearest.node != kNone) {
    out +=
        "  nearest: " + cluster.nodes().spec(why.nearest.node).name + " (" +
        std::string(Name(why.nearest.filter)) +
        (why.nearest.gpus_missing > 0 ? ", " + std::to_string(why.nearest.gpus_missing) + " missing"
                                      : "") +
        ")\n";
  }
  for (const auto& holder : why.holders) {
    out += "  held: " + FormatMilli(holder.gpu_milli) + " GPUs by " +
           cluster.queues().spec(holder.queue).name + ", " + std::string(Name(holder.right)) + "\n";
  }
  for (const auto& change : why.changes) out += "  would start it: " + Describe(change) + "\n";
  return out;
}

}  // namespace muster::engine

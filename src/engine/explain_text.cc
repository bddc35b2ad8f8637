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

std::string Amount(const Cluster& cluster, std::size_t dim, std::int64_t value) {
  const auto& queues = cluster.queues();
  if (dim == kMemoryDim) return FormatBytes(value) + " of memory";
  if (dim >= queues.first_countable_dim()) {
    return std::to_string(value) + " " + queues.dim_name(dim);
  }
  return FormatMilli(value) + " " + queues.dim_name(dim);
}

}  // namespace

std::string Sentence(const Cluster& cluster, const Explanation& why) {
  const auto& queues = cluster.queues();
  const auto bound = [&](const std::string& what) {
    return "queue " + queues.spec(why.stopped_by).name + " holds " +
           Amount(cluster, why.resource, why.held) + " of its " + what + " of " +
           Amount(cluster, why.resource, why.bound) + ", and this would add " +
           Amount(cluster, why.resource, why.asked);
  };
  switch (why.gate) {
    case Gate::kNotConsidered:
      return "nothing has been decided yet";
    case Gate::kOnHold:
      return "it is on hold";
    case Gate::kMinimum:
      return "fewer of its workers are left than its minimum";
    case Gate::kLimit:
      return bound("limit");
    case Gate::kFixedQuota:
      return "it is not preemptible, and " + bound("quota for such work");
    case Gate::kTopology:
      return "it names a topology level that does not exist here";
    case Gate::kNeverFits:
      return "with nothing else running there would be room for " + std::to_string(why.fit_ever) +
             " of " + std::to_string(why.workers) + " workers: it can never start here";
    case Gate::kCapacity:
      return "there is room for " + std::to_string(why.fit_now) + " of " +
             std::to_string(why.workers) + " workers, and nobody who may be asked to leave";
    case Gate::kPromised:
      return "room is being left for it";
    case Gate::kShare:
      return "there is no room, and it may not reclaim: " + bound("fair share");
    case Gate::kDelay:
      return "there is no room, and it is too young to cause an eviction";
    case Gate::kNotProven:
      return "there is no room; the search for somebody to leave was cut short";
  }
  return "";
}

std::string Describe(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kFewerWorkers:
      return "ask for " + std::to_string(change.amount) + " workers";
    case Change::Kind::kOtherType:
      return "allow GPUs of type " + change.name;
    case Change::Kind::kOtherQueue:
      return "submit it to queue " + change.name;
    case Change::Kind::kRaiseLimit:
    case Change::Kind::kRaiseQuota: {
      const bool limit = change.kind == Change::Kind::kRaiseLimit;
      const bool bytes = change.resource == "memory";
      return std::string("raise the ") + (limit ? "limit" : "quota") + " of " + change.name +
             " by " + (bytes ? FormatBytes(change.amount) : FormatMilli(change.amount)) + " " +
             change.resource;
    }
    case Change::Kind::kFreeGpus:
      return "free " + std::to_string(change.amount) + " GPUs on node " + change.name;
  }
  return "";
}

std::string Render(const Cluster& cluster, const Explanation& why) {
  std::string out = cluster.job(why.job).name + " waits: " + Sentence(cluster, why) + ".\n";
  out += "  share: quota " + (why.quota == kUnlimited ? "unlimited" : FormatMilli(why.quota)) +
         ", held " + FormatMilli(why.queue_held) + ", fair share " + FormatMilli(why.share) + "; " +
         std::to_string(why.jobs_ahead) + " jobs ahead in its queue\n";
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

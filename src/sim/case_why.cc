// CaseJudge, second half: explanations.
#include <algorithm>
#include <array>

#include "base/units.h"
#include "engine/explain.h"
#include "sim/case_judge.h"

namespace muster::sim {

using engine::Change;
using engine::Explanation;

namespace {

std::string Written(const engine::Holder& holder, const engine::Cluster& cluster) {
  constexpr std::array<const char*, 4> kRights = {"fixed", "quota", "share", "beyond"};
  return cluster.queues().spec(holder.queue).name + ":" +
         kRights[static_cast<std::size_t>(holder.right)] + ":" + FormatMilli(holder.gpu_milli);
}

std::string Written(const Change& change, const engine::Cluster& cluster) {
  const auto dim = cluster.queues().FindDim(change.resource);
  const bool pieces = dim == engine::kMemoryDim || dim >= cluster.queues().first_countable_dim();
  const auto amount = pieces ? std::to_string(change.amount) : FormatMilli(change.amount);
  switch (change.kind) {
    case Change::Kind::kFewerWorkers:
      return "workers:" + std::to_string(change.amount);
    case Change::Kind::kOtherType:
      return "type:" + change.name;
    case Change::Kind::kOtherQueue:
      return "queue:" + change.name;
    case Change::Kind::kRaiseLimit:
      return "limit:" + change.name + ":" + amount;
    case Change::Kind::kRaiseQuota:
      return "quota:" + change.name + ":" + amount;
    case Change::Kind::kFreeGpus:
      return "gpus:" + change.name + ":" + std::to_string(change.amount);
    case Change::Kind::kUncordon:
      return "uncordon:" + change.name;
  }
  return "";
}

std::vector<std::string> WrittenNodes(const Explanation& why) {
  std::vector<std::string> out;
  for (std::size_t f = 0; f < engine::kFilters; ++f) {
    if (why.nodes[f] == 0) continue;
    out.push_back(std::string(engine::Name(static_cast<engine::Filter>(f))) + ":" +
                  std::to_string(why.nodes[f]));
  }
  return out;
}

}  // namespace

std::vector<std::string> CaseJudge::Differences(const ExpectWhy& want) const {
  const auto id = cluster_.FindJob(want.name);
  if (id == engine::kNone) return {"there is no job " + want.name};
  if (cluster_.job(id).pending == 0) return {want.name + ": does not wait"};
  const Explanation why = engine::Explain(cluster_, id, now_ms_);
  std::vector<std::string> out;
  const auto same = [&](const char* what, const std::string& is, const std::string& wanted) {
    if (!wanted.empty() && is != wanted) {
      out.push_back(want.name + ": " + what + " " + is + ", expected " + wanted);
    }
  };
  const auto count = [&](const char* what, std::int64_t is,
                         const std::optional<std::int64_t>& wanted) {
    same(what, std::to_string(is), wanted ? std::to_string(*wanted) : "");
  };
  const auto told = [&](const char* what, const std::vector<std::string>& is,
                        const std::vector<std::string>& wanted) {
    std::string all;
    for (const auto& item : is) all += (all.empty() ? "" : ",") + item;
    for (const auto& item : wanted) {
      if (std::find(is.begin(), is.end(), item) == is.end()) same(what, all, item);
    }
  };
  same("stopped at the gate", std::string(model::Name(why.gate)), want.gate);
  same("stopped by the queue",
       why.stopped_by == engine::kNone ? "" : cluster_.queues().spec(why.stopped_by).name, want.at);
  same("nearest fit",
       why.nearest.node == engine::kNone ? "" : cluster_.nodes().spec(why.nearest.node).name,
       want.nearest);
  count("GPUs missing there", why.nearest.gpus_missing, want.missing);
  count("workers that fit", why.fit_now, want.fit);
  count("jobs ahead", why.jobs_ahead, want.ahead);
  told("nodes rejected", WrittenNodes(why), want.nodes);
  std::vector<std::string> holders, changes;
  for (const auto& holder : why.holders) holders.push_back(Written(holder, cluster_));
  for (const auto& change : why.changes) changes.push_back(Written(change, cluster_));
  told("holders", holders, want.holders);
  told("changes offered", changes, want.changes);
  return out;
}

}  // namespace muster::sim

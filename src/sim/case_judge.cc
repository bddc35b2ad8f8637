#include "sim/case_judge.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/units.h"
#include "engine/devices.h"

namespace muster::sim {

using engine::JobId;
using engine::NodeId;
using engine::WorkerState;
using model::ActionKind;

namespace {

constexpr std::array<const char*, 4> kLinks = {"nvlink", "switch", "socket", "across"};

template <typename Names>
std::string Join(const Names& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ",") + std::string(name);
  return out.empty() ? "nothing" : out;
}

std::string DeviceNames(std::uint64_t devices) {
  std::string out;
  for (; devices != 0; devices &= devices - 1) {
    out += (out.empty() ? "" : "+") + std::to_string(std::countr_zero(devices));
  }
  return out;
}

std::string Unlike(const std::string& what, const std::string& seen, const std::string& want) {
  return what + " " + seen + ", expected " + want;
}

}  // namespace

// What the running workers of a job hold.
struct CaseJudge::Seen {
  std::int64_t running = 0, pending = 0, leaving = 0, promised = 0, gpus_milli = 0;
  bool satisfied = false, apart = true;
  int link = 0;
  std::set<std::string> islands, types;
  std::map<std::string, std::uint64_t> devices;  // by node
};

void CaseJudge::Note(const model::Plan& plan, std::int64_t now_ms) {
  last_ = plan;
  now_ms_ = now_ms;
  for (const auto& action : plan.actions) ++total_[action.kind];
}

CaseJudge::Seen CaseJudge::Look(JobId id) const {
  Seen seen;
  const auto& job = cluster_.job(id);
  seen.satisfied = job.Satisfied() && job.active > 0;
  for (const auto& worker : job.workers) {
    const auto& place = worker.place;
    seen.pending += place.state == WorkerState::kPending ? 1 : 0;
    seen.leaving += place.state == WorkerState::kLeaving ? 1 : 0;
    if (!place.Holds()) continue;
    ++seen.running;
    seen.gpus_milli += place.charge_milli;
    const auto& bank = cluster_.nodes().bank(place.bank);
    const auto& node = cluster_.nodes().spec(bank.node);
    auto& devices = seen.devices[node.name];
    seen.apart &= (devices & place.devices) == 0;
    devices |= place.devices;
    if (bank.type != engine::kNone) seen.types.insert(cluster_.nodes().type_name(bank.type));
    const auto& layout = cluster_.nodes().layout(bank.node);
    seen.link = std::max(seen.link, engine::LinkDistance(layout, place.devices));
    for (auto rest = place.devices; rest != 0; rest &= rest - 1) {
      const auto& gpu = node.gpus[static_cast<std::size_t>(std::countr_zero(rest))];
      seen.islands.insert(node.name + "/" + std::to_string(gpu.nvlink_island));
    }
  }
  for (const auto& promise : last_.promises) seen.promised += promise.job == id ? 1 : 0;
  return seen;
}

void CaseJudge::CompareCounts(const ExpectJob& want, const Seen& seen,
                              std::vector<std::string>& out) const {
  const auto count = [&](const char* what, std::int64_t is,
                         const std::optional<std::int64_t>& wanted) {
    if (wanted && *wanted != is) {
      out.push_back(Unlike(want.name + ": " + what, std::to_string(is), std::to_string(*wanted)));
    }
  };
  count("running", seen.running, want.running);
  count("pending", seen.pending, want.pending);
  count("leaving", seen.leaving, want.leaving);
  count("promised", seen.promised, want.promised);
  count("nodes", static_cast<std::int64_t>(seen.devices.size()), want.nodes);
  count("islands", static_cast<std::int64_t>(seen.islands.size()), want.islands);
  if (want.gpus_milli && *want.gpus_milli != seen.gpus_milli) {
    out.push_back(Unlike(want.name + ": holds GPUs", FormatMilli(seen.gpus_milli),
                         FormatMilli(*want.gpus_milli)));
  }
  const std::string now = std::to_string(seen.running) + " running, " +
                          std::to_string(seen.pending) + " pending, " +
                          std::to_string(seen.leaving) + " leaving";
  switch (want.state) {
    case CaseState::kAny:
      break;
    case CaseState::kRunning:
      if (!seen.satisfied) out.push_back(Unlike(want.name + ":", now, "its minimum running"));
      break;
    case CaseState::kFull:
      if (seen.running == 0 || seen.pending + seen.leaving > 0) {
        out.push_back(Unlike(want.name + ":", now, "all running"));
      }
      break;
    case CaseState::kPending:
      if (seen.running + seen.leaving > 0) out.push_back(Unlike(want.name + ":", now, "pending"));
      break;
  }
}

void CaseJudge::ComparePlaces(const ExpectJob& want, const Seen& seen,
                              std::vector<std::string>& out) const {
  std::set<std::string> nodes;
  for (const auto& [node, devices] : seen.devices) nodes.insert(node);
  const std::set<std::string> on(want.on.begin(), want.on.end());
  if (!on.empty() && on != nodes) {
    out.push_back(Unlike(want.name + ": on", Join(nodes), Join(on)));
  }
  const std::set<std::string> types(want.types.begin(), want.types.end());
  if (!types.empty() && types != seen.types) {
    out.push_back(Unlike(want.name + ": on GPUs of type", Join(seen.types), Join(types)));
  }
  std::map<std::string, std::uint64_t> places;
  for (const auto& place : want.places) places[place.node] |= place.devices;
  if (!places.empty() && places != seen.devices) {
    std::vector<std::string> is, wanted;
    for (const auto& [node, devices] : seen.devices)
      is.push_back(node + ":" + DeviceNames(devices));
    for (const auto& [node, devices] : places) wanted.push_back(node + ":" + DeviceNames(devices));
    out.push_back(Unlike(want.name + ": on GPUs", Join(is), Join(wanted)));
  }
  if (want.apart && !seen.apart) out.push_back(want.name + ": two workers share a GPU");
  if (want.link && static_cast<int>(*want.link) != seen.link) {
    out.push_back(Unlike(want.name + ": GPUs linked by",
                         kLinks[static_cast<std::size_t>(seen.link)], kLinks[*want.link]));
  }
}

void CaseJudge::CompareCause(const ExpectJob& want, JobId id, std::vector<std::string>& out) const {
  if (want.rule.empty() && want.cause.empty()) return;
  std::set<std::string> rules, causes;
  for (const auto& action : last_.actions) {
    const bool leaves = action.kind == ActionKind::kShrink || action.kind == ActionKind::kMove ||
                        action.kind == ActionKind::kPause;
    if (action.job != id || !leaves) continue;
    rules.insert(std::string(model::Name(action.rule)));
    causes.insert(cluster_.job(action.cause).name);
  }
  if (!want.rule.empty() && rules != std::set{want.rule}) {
    out.push_back(Unlike(want.name + ": left by the rule", Join(rules), want.rule));
  }
  if (!want.cause.empty() && causes != std::set{want.cause}) {
    out.push_back(Unlike(want.name + ": left for", Join(causes), want.cause));
  }
}

std::vector<std::string> CaseJudge::Differences(const ExpectJob& want) const {
  const JobId id = cluster_.FindJob(want.name);
  if (id == engine::kNone) return {"there is no job " + want.name};
  std::vector<std::string> out;
  const Seen seen = Look(id);
  CompareCounts(want, seen, out);
  ComparePlaces(want, seen, out);
  CompareCause(want, id, out);
  return out;
}

std::vector<std::string> CaseJudge::Differences(const ExpectQueue& want) const {
  const auto& queues = cluster_.queues();
  const auto id = queues.Find(want.name);
  if (id == engine::kNone) return {"there is no queue " + want.name};
  std::vector<std::string> out;
  const auto compare = [&](const char* what, const model::Amounts& wanted, const engine::Vec& is) {
    for (const auto& [name, amount] : wanted) {
      const auto dim = queues.FindDim(name);
      const auto seen = dim < queues.dims() ? is[dim] : 0;
      if (seen == amount) continue;
      const bool milli = dim == engine::kGpuDim || dim == engine::kCpuDim ||
                         (dim >= engine::kFirstNamedDim && dim < queues.first_countable_dim());
      const auto write = [&](std::int64_t value) {
        return milli ? FormatMilli(value) : std::to_string(value);
      };
      out.push_back(Unlike(want.name + ": " + what + " of " + name, write(seen), write(amount)));
    }
  };
  compare("share", want.share, queues[id].share);
  compare("held", want.held, queues[id].held);
  return out;
}

std::vector<std::string> CaseJudge::Differences(const ExpectPlan& want) const {
  std::vector<std::string> out;
  std::map<ActionKind, std::int64_t> counts;
  if (want.total) {
    counts = total_;
  } else {
    for (const auto& action : last_.actions) ++counts[action.kind];
  }
  const std::string of = want.total ? "in total " : "the plan's ";
  const auto compare = [&](const std::string& what, std::int64_t is, std::int64_t wanted) {
    if (is != wanted) out.push_back(Unlike(of + what, std::to_string(is), std::to_string(wanted)));
  };
  for (const auto& [kind, count] : want.counts) {
    compare(std::string(model::Name(kind)) + "s", counts[kind], count);
  }
  if (want.evictions) {
    compare("evictions", counts[ActionKind::kShrink] + counts[ActionKind::kPause], *want.evictions);
  }
  if (want.empty) compare("actions", static_cast<std::int64_t>(last_.actions.size()), 0);
  return out;
}

}  // namespace muster::sim

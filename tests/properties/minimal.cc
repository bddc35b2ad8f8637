#include "minimal.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/placement.h"

namespace muster::properties {

using engine::Cluster;
using engine::JobId;
using engine::Mode;
using engine::WorkerRef;
using engine::WorkerState;
using model::ActionKind;
using model::Rule;

namespace {

using Workers = std::set<std::pair<std::string, std::uint32_t>>;  // job name and index

bool IsStop(const model::Action& action) {
  return action.kind == ActionKind::kPause || action.kind == ActionKind::kShrink;
}

bool IsClaim(Rule rule) {
  return rule == Rule::kShrink || rule == Rule::kReclaimShare || rule == Rule::kReclaimQuota ||
         rule == Rule::kPreempt;
}

// The units among those who were stopped: whole jobs, groups, single workers above the minimum.
std::vector<Workers> Units(const World& after, const model::Plan& plan) {
  std::map<std::pair<std::string, std::uint32_t>, Workers> by_part;
  for (const auto& action : plan.actions) {
    if (!IsStop(action)) continue;
    const auto& job = after.cluster().job(action.job);
    const auto group = job.workers[action.worker].group;
    std::uint32_t part = 0;  // the job as a whole
    if (job.Satisfied()) {
      const bool alone = job.groups[group].Satisfied();
      part = alone ? 1000 + action.worker : 1 + group;
    }
    by_part[{job.name, part}].insert({job.name, action.worker});
  }
  std::vector<Workers> out;
  for (const auto& [part, workers] : by_part) {
    out.push_back(workers);
    // Of an elastic job that was stopped as a whole, the minimum alone might have stayed.
    const auto& job = after.cluster().job(after.cluster().FindJob(part.first));
    const auto least = job.groups[0].minimum;
    if (part.second != 0 || job.groups.size() > 1 || workers.size() <= least) continue;
    Workers core = workers;
    while (core.size() > least) core.erase(std::prev(core.end()));
    out.push_back(core);
  }
  return out;
}

// The facts with everybody gone whom the plan stopped or moved, but those who stay; and with
// everybody in place whom the plan started on free room.
Facts Leave(Facts facts, const World& after, const model::Plan& plan, const Workers& stay) {
  std::map<std::string, JobFact*> by_name;
  for (auto& fact : facts.jobs) by_name[fact.spec.name] = &fact;
  for (const auto& action : plan.actions) {
    const auto& name = after.cluster().job(action.job).name;
    auto& worker = by_name.at(name)->workers[action.worker];
    if (action.kind == ActionKind::kStart || action.kind == ActionKind::kGrow) {
      worker = {WorkerState::kRunning, action.node, action.devices, after.now_ms()};
    } else if (!stay.contains({name, action.worker})) {
      worker = {};
    }
  }
  for (auto& fact : facts.jobs) {
    for (auto& worker : fact.workers) {
      if (worker.state == WorkerState::kLeaving) worker = {};
    }
  }
  return facts;
}

std::uint32_t Active(const Cluster& cluster, JobId job) { return cluster.job(job).active; }

// Places what the job asks for next until it has `wanted` workers; false: it cannot be.
bool Grow(Cluster& cluster, engine::Placement& placement, JobId id, std::uint32_t wanted) {
  std::vector<engine::Piece> pieces;
  while (Active(cluster, id) < wanted) {
    placement.NextPieces(id, pieces);
    const auto& job = cluster.job(id);
    bool placed = false;
    for (const auto& piece : pieces) {
      if (!cluster.queues().WithinLimits(job.queue, piece.cost)) continue;
      if (!job.preemptible && !cluster.queues().WithinFixedQuota(job.queue, piece.cost)) continue;
      if (placed = placement.Place(piece, Mode::kFree); placed) break;
    }
    if (!placed) return false;
  }
  return true;
}

bool StillPossible(const Facts& facts, const World& after, const model::Plan& plan) {
  const auto cluster = Build(facts);
  for (const auto& made : plan.reserved) {  // whose room is not for those who claim
    for (const auto& room : made.rooms) {
      engine::Hold hold{cluster->nodes().BankOfDevices(room.node, room.devices), room.devices, {}};
      hold.host[engine::kHostCpu] = room.cpu_milli;
      hold.host[engine::kHostMemory] = room.memory_bytes;
      cluster->Keep(hold, +1);
    }
  }
  engine::Placement placement(*cluster);
  std::vector<std::string> order;  // jobs that were promised something, and how much they get
  std::map<std::string, std::uint32_t> wanted;
  const auto want = [&](JobId job) {
    const auto& name = after.cluster().job(job).name;
    const auto id = cluster->FindJob(name);
    if (!wanted.contains(name)) {
      wanted[name] = Active(*cluster, id);
      order.push_back(name);
    }
    ++wanted[name];
  };
  for (const auto& promise : plan.promises) want(promise.job);
  for (const auto& action : plan.actions) {
    if (action.kind == ActionKind::kMove) want(action.job);
  }
  return std::all_of(order.begin(), order.end(), [&](const std::string& name) {
    return Grow(*cluster, placement, cluster->FindJob(name), wanted[name]);
  });
}

}  // namespace

bool IsOneClaim(const model::Plan& plan) {
  std::set<std::uint32_t> claimers;
  std::set<Rule> rules;
  for (const auto& action : plan.actions) {
    if (action.kind == ActionKind::kStart || action.kind == ActionKind::kGrow) continue;
    claimers.insert(action.cause);
    if (!IsStop(action)) continue;
    rules.insert(action.rule);
    if (!IsClaim(action.rule)) return false;
  }
  if (claimers.size() != 1 || rules.empty()) return false;
  // One search for one piece: the shares of a second piece would be hard to tell apart.
  std::set<std::uint32_t> promised;
  for (const auto& promise : plan.promises) promised.insert(promise.job);
  return promised.size() == 1 && promised == claimers;
}

std::string DroppableVictim(const Facts& before, const World& after, const model::Plan& plan) {
  const auto claimer = plan.promises[0].job;
  const auto& job = after.cluster().job(claimer);
  const bool was_below = !job.Satisfied();
  const auto least = static_cast<std::size_t>(job.groups[0].minimum);
  const bool one_piece = plan.promises.size() == 1 ||
                         (was_below && job.groups.size() == 1 && plan.promises.size() <= least);
  if (!one_piece) return "";
  for (const auto& unit : Units(after, plan)) {
    if (!StillPossible(Leave(before, after, plan, unit), after, plan)) continue;
    std::string names;
    for (const auto& [name, index] : unit) names += " " + name + "/" + std::to_string(index);
    return "could have stayed:" + names;
  }
  return "";
}

}  // namespace muster::properties

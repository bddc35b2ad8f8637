#include "sim/corpus_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/units.h"
#include "engine/cluster.h"
#include "engine/cycle.h"

namespace muster::sim {

using engine::Cluster;
using engine::WorkerRef;
using engine::WorkerState;

namespace {

constexpr std::int64_t kNowMs = 1'000'000'000'000;
constexpr int kDeducedRounds = 5;

class Runner {
 public:
  explicit Runner(const Scenario& scenario) : scenario_(scenario) {}

  Result<ScenarioResult> Run();

 private:
  Result<void> Load();
  Result<void> LoadJob(const ScenarioJob& job);
  Result<void> LeaveBefore(int round);
  Round RunRound();
  std::vector<std::string> Differences(const Round& round) const;
  void CheckDomains(int number, const Round& round, std::vector<std::string>& out) const;
  void CheckGangs(int number, const Round& round, std::vector<std::string>& out) const;

  const Scenario& scenario_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::map<std::string, WorkerRef> workers_;
  std::map<std::string, const Task*> terminating_;
  std::set<std::string> gone_;
  std::vector<WorkerRef> leaving_;
};

Result<void> Runner::Load() {
  engine::Setup setup;
  setup.topologies = scenario_.topologies;
  setup.queues = scenario_.queues;
  setup.policy = engine::CorpusPolicy();
  setup.policy.victims_may_move = scenario_.victims_may_move;
  setup.policy.move_limit = scenario_.move_limit;
  auto made = Cluster::Make(std::move(setup));
  if (!made) return tl::unexpected(made.error());
  cluster_ = std::move(*made);
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
  for (const auto& node : scenario_.nodes) {
    if (auto added = cluster_->AddNode(node); !added) return tl::unexpected(added.error());
  }
  for (const auto& job : scenario_.jobs) {
    if (auto loaded = LoadJob(job); !loaded) return loaded;
  }
  return {};
}

Result<void> Runner::LoadJob(const ScenarioJob& job) {
  const auto id = cluster_->AddJob(job.spec, kNowMs - job.created_s_ago * 1000);
  if (!id) return tl::unexpected(id.error());
  if (job.stale_for_s) cluster_->SetStaleSince(*id, kNowMs - *job.stale_for_s * 1000);
  for (std::uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[cluster_->job(*id).workers[i].role];
    const WorkerRef ref{*id, i};
    workers_[task.name] = ref;
    WorkerState state = WorkerState::kPending;
    switch (task.state) {
      case TaskState::kPending:
      case TaskState::kGone:
        continue;
      case TaskState::kRunning:
        state = WorkerState::kRunning;
        break;
      case TaskState::kTerminating:
        state = WorkerState::kLeaving;
        terminating_[task.name] = &task;
        break;
      case TaskState::kStuck:
        state = WorkerState::kStuck;
        break;
      case TaskState::kFailed:
        state = WorkerState::kFailed;
        break;
      case TaskState::kSucceeded:
        state = WorkerState::kSucceeded;
        break;
    }
    const auto node = task.node.empty() ? engine::kNone : cluster_->FindNode(task.node);
    auto reported =
        cluster_->ReportWorker(ref, state, node, task.gpus, kNowMs - task.started_s_ago * 1000);
    if (!reported) return reported;
  }
  return {};
}

Result<void> Runner::LeaveBefore(int round) {
  for (const auto& ref : leaving_) cluster_->ReportLeft(ref);
  leaving_.clear();
  for (const auto& [name, task] : terminating_) {
    if (task->leaves_before_round != round) continue;
    const WorkerRef ref = workers_.at(name);
    cluster_->ReportLeft(ref);
    if (task->returns_as_pending) continue;
    gone_.insert(name);
    auto ended = cluster_->ReportWorker(ref, WorkerState::kFailed, engine::kNone, 0, 0);
    if (!ended) return ended;
  }
  return {};
}

Round Runner::RunRound() {
  Round round;
  const model::Plan plan = scheduler_->Cycle(kNowMs);
  std::set<WorkerRef> evicted, moved;
  for (const auto& action : plan.actions) {
    const WorkerRef ref{action.job, action.worker};
    switch (action.kind) {
      case model::ActionKind::kStart:
      case model::ActionKind::kGrow:
        break;
      case model::ActionKind::kMove:
        moved.insert(ref);
        leaving_.push_back(ref);
        break;
      case model::ActionKind::kShrink:
      case model::ActionKind::kPause:
        evicted.insert(ref);
        leaving_.push_back(ref);
        break;
    }
  }
  for (const auto& [name, ref] : workers_) {
    const auto& place = cluster_->worker(ref).place;
    SeenTask seen;
    const bool holds = place.Holds();
    switch (place.state) {
      case WorkerState::kPending:
        break;
      case WorkerState::kRunning:
        seen.state = TaskState::kRunning;
        break;
      case WorkerState::kLeaving:
        seen.state = evicted.contains(ref) || moved.contains(ref) ? TaskState::kPending
                                                                  : TaskState::kTerminating;
        break;
      case WorkerState::kStuck:
        seen.state = TaskState::kStuck;
        break;
      case WorkerState::kFailed:
        seen.state = gone_.contains(name) ? TaskState::kGone : TaskState::kFailed;
        break;
      case WorkerState::kSucceeded:
        seen.state = TaskState::kSucceeded;
        break;
    }
    if (holds || seen.state == TaskState::kTerminating) {
      seen.node = cluster_->nodes().spec(cluster_->nodes().bank(place.bank).node).name;
    }
    if (seen.state == TaskState::kRunning) seen.gpu_milli = place.charge_milli;
    round.tasks[name] = seen;
    if (evicted.contains(ref)) round.evicted.push_back(name);
  }
  return round;
}

std::vector<std::string> Runner::Differences(const Round& round) const {
  std::vector<std::string> out;
  for (const auto& job : scenario_.jobs) {
    const auto found = scenario_.expect.find(job.spec.name);
    if (found == scenario_.expect.end()) continue;
    const JobExpectation& want = found->second;
    std::map<TaskState, int> counts;
    std::int64_t gpus = 0;
    for (const auto& task : job.tasks) {
      const auto& seen = round.tasks.at(task.name);
      ++counts[seen.state];
      gpus += seen.gpu_milli;
    }
    for (const auto& [state, count] : want.counts) {
      if (counts[state] == count) continue;
      out.push_back(job.spec.name + ": " + std::to_string(counts[state]) + " " + Name(state) +
                    ", expected " + std::to_string(count));
    }
    if (want.gpus_milli && std::abs(gpus - *want.gpus_milli) > 1) {
      out.push_back(job.spec.name + ": holds " + FormatMilli(gpus) + " GPUs, expected " +
                    FormatMilli(*want.gpus_milli));
    }
    for (const auto& [name, task] : want.tasks) {
      const auto& seen = round.tasks.at(name);
      if (task.state && *task.state != seen.state) {
        out.push_back(name + ": " + Name(seen.state) + ", expected " + Name(*task.state));
      } else if (!task.node.empty() && seen.state == TaskState::kRunning &&
                 seen.node != task.node) {
        out.push_back(name + ": on " + seen.node + ", expected " + task.node);
      }
    }
  }
  return out;
}

// A required level holds all running tasks of its group in one domain.
void Runner::CheckDomains(int number, const Round& round, std::vector<std::string>& out) const {
  std::map<std::string, const model::Labels*> labels;
  for (const auto& node : scenario_.nodes) labels[node.name] = &node.labels;
  for (const auto& job : scenario_.jobs) {
    const auto& groups = job.spec.groups;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto& level = groups[g].topology.require;
      if (level.empty()) continue;
      std::set<std::string> domains;
      for (const auto& role : job.spec.roles) {
        int at = role.group;
        while (at > static_cast<int>(g)) at = groups[static_cast<std::size_t>(at)].parent;
        const auto& seen = round.tasks.at(role.name);
        if (at != static_cast<int>(g) || seen.state != TaskState::kRunning) continue;
        const auto& here = *labels.at(seen.node);
        domains.insert(here.contains(level) ? here.at(level) : "");
      }
      if (domains.size() > 1) {
        out.push_back("round " + std::to_string(number) + ": " + job.spec.name +
                      " spread over several " + level);
      }
    }
  }
}

// A job that got a task must reach its minimum.
void Runner::CheckGangs(int number, const Round& round, std::vector<std::string>& out) const {
  for (const auto& job : scenario_.jobs) {
    bool started = false, ended = false;
    for (const auto& task : job.tasks) {
      started |= task.state != TaskState::kRunning &&
                 round.tasks.at(task.name).state == TaskState::kRunning;
      ended |= task.state == TaskState::kSucceeded;
    }
    if (!started || ended) continue;
    const auto id = cluster_->FindJob(job.spec.name);
    if (!cluster_->job(id).Satisfied()) {
      out.push_back("round " + std::to_string(number) + ": " + job.spec.name +
                    " runs below its minimum");
    }
  }
}

Result<ScenarioResult> Runner::Run() {
  if (auto loaded = Load(); !loaded) {
    Error error = loaded.error();
    error.message = scenario_.id + ": " + error.message;
    return tl::unexpected(error);
  }
  ScenarioResult result;
  result.id = scenario_.id;
  const int first = scenario_.rounds_to_converge;
  const int last = scenario_.deduced ? std::max(first, kDeducedRounds) : first;
  for (int number = 1; number <= last + scenario_.stable_rounds; ++number) {
    if (auto left = LeaveBefore(number); !left) return tl::unexpected(left.error());
    result.rounds.push_back(RunRound());
    const Round& round = result.rounds.back();
    CheckDomains(number, round, result.differences);
    CheckGangs(number, round, result.differences);
    if (!scenario_.no_evictions) continue;
    for (const auto& task : round.evicted) {
      result.differences.push_back("round " + std::to_string(number) + ": " + task +
                                   " was evicted, nothing may be");
    }
  }
  std::set<std::string> wrong;
  for (int k = first; k <= last; ++k) {
    std::set<std::string> here;
    for (int i = k; i <= k + scenario_.stable_rounds; ++i) {
      const auto found = Differences(result.rounds[static_cast<std::size_t>(i - 1)]);
      here.insert(found.begin(), found.end());
    }
    if (here.empty()) return result;
    if (k == first) wrong = here;
  }
  result.differences.insert(result.differences.end(), wrong.begin(), wrong.end());
  return result;
}

}  // namespace

Result<ScenarioResult> RunScenario(const Scenario& scenario) { return Runner(scenario).Run(); }

ShareResult RunShareCase(const ShareCase& share) {
  ShareResult result;
  result.id = share.id;
  engine::ShareDivider divider;
  for (const auto& part : share.parts) {
    auto claims = part.claims;
    const std::int64_t unit = part.scale;
    if (part.over_quota_only) {
      divider.DivideOver(part.total, unit, claims);
    } else {
      divider.Divide(part.total, unit, claims);
    }
    std::map<std::string, double> shares;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      shares[part.names[i]] =
          static_cast<double>(claims[i].share) / static_cast<double>(part.scale);
    }
    for (const auto& [name, want] : part.expect) {
      if (std::abs(shares[name] - want) <= std::max(1e-6, 1e-6 * std::abs(want))) continue;
      result.differences.push_back(name + ": " + std::to_string(shares[name]) + ", expected " +
                                   std::to_string(want));
    }
    result.shares.push_back(std::move(shares));
  }
  return result;
}

}  // namespace muster::sim

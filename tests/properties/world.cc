#include "world.h"

#include <algorithm>

#include "base/check.h"

namespace muster::properties {

using engine::Cluster;
using engine::JobId;
using engine::NodeId;
using engine::WorkerRef;
using engine::WorkerState;
using model::ActionKind;

namespace {

constexpr std::int64_t kSecondMs = 1000;
constexpr int kLongestWait = 65;  // cycles until a search that was cut off is tried again

template <typename T>
T Must(Result<T> result) {
  MUSTER_CHECK(result.has_value(), result.error().message);
  return std::move(*result);
}

std::unique_ptr<Cluster> MakeCluster(const Facts& facts) {
  engine::Setup setup;
  setup.topologies = MakeTopologies();
  setup.queues = facts.queues;
  setup.policy = facts.policy;
  auto cluster = Must(Cluster::Make(std::move(setup)));
  for (const auto& node : facts.nodes) Must(cluster->AddNode(node.spec));
  return cluster;
}

}  // namespace

std::unique_ptr<Cluster> Build(const Facts& facts) {
  auto cluster = MakeCluster(facts);
  for (const auto& job : facts.jobs) {
    const JobId id = Must(cluster->AddJob(job.spec, job.submitted_ms));
    if (job.checkpoint_ms >= 0) cluster->ReportCheckpoint(id, job.checkpoint_ms);
    if (job.stale_since_ms >= 0) cluster->SetStaleSince(id, job.stale_since_ms);
    if (job.on_hold) cluster->SetHold(id, true);
    for (std::uint32_t i = 0; i < job.workers.size(); ++i) {
      const auto& worker = job.workers[i];
      if (worker.state == WorkerState::kPending) continue;
      const auto done = cluster->ReportWorker({id, i}, worker.state, worker.node, worker.devices,
                                              worker.started_ms);
      MUSTER_CHECK(done.has_value(), "a worker is where it was");
    }
  }
  for (NodeId n = 0; n < facts.nodes.size(); ++n) {
    const auto& node = facts.nodes[n];
    if (!node.up) cluster->SetNodeUp(n, false);
    if (node.cordoned || node.draining) {
      cluster->SetNodeCordoned(n, node.cordoned, node.draining);
    }
  }
  return cluster;
}

World::World(const Scene& scene, Change change) {
  facts_.policy = MakePolicy(scene.policy);
  if (change != nullptr) facts_.policy = change(facts_.policy);
  facts_.queues = MakeQueues(scene.queues);
  for (std::size_t i = 0; i < scene.nodes.size(); ++i) {
    facts_.nodes.push_back({MakeNode(scene.nodes[i], i)});
  }
  leaves_ = Leaves(facts_.queues);
  cluster_ = MakeCluster(facts_);
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
}

JobId World::Submit(const model::Job& job) {
  const JobId id = Must(cluster_->AddJob(job, now_ms_));
  JobFact fact;
  fact.spec = job;
  fact.submitted_ms = now_ms_;
  facts_.jobs.push_back(std::move(fact));
  return id;
}

void World::Finish(std::size_t index) {
  const std::string name = facts_.jobs[index].spec.name;
  cluster_->RemoveJob(cluster_->FindJob(name));
  facts_.jobs.erase(facts_.jobs.begin() + static_cast<std::ptrdiff_t>(index));
  std::erase_if(leavers_, [&](const Leaver& leaver) { return leaver.job == name; });
}

const JobFact& World::FactOf(JobId job) const {
  const auto& name = cluster_->job(job).name;
  const auto found = std::find_if(facts_.jobs.begin(), facts_.jobs.end(),
                                  [&](const JobFact& fact) { return fact.spec.name == name; });
  MUSTER_CHECK(found != facts_.jobs.end(), "the cluster knows only jobs that were submitted");
  return *found;
}

void World::Checkpoint(int pick) {
  if (facts_.jobs.empty()) return;
  auto& fact = facts_.jobs[static_cast<std::size_t>(pick) % facts_.jobs.size()];
  fact.checkpoint_ms = now_ms_;
  cluster_->ReportCheckpoint(cluster_->FindJob(fact.spec.name), now_ms_);
}

void World::EndWorker(int pick, WorkerState state) {
  std::vector<WorkerRef> running;
  for (const auto& fact : facts_.jobs) {
    const JobId id = cluster_->FindJob(fact.spec.name);
    for (std::uint32_t i = 0; i < cluster_->job(id).workers.size(); ++i) {
      if (cluster_->worker({id, i}).place.state == WorkerState::kRunning)
        running.push_back({id, i});
    }
  }
  if (running.empty()) return;
  const auto ref = running[static_cast<std::size_t>(pick) % running.size()];
  const auto done = cluster_->ReportWorker(ref, state, engine::kNone, 0, now_ms_);
  MUSTER_CHECK(done.has_value(), "a running worker may end");
}

void World::SetNode(int pick, EventKind kind) {
  const auto id = static_cast<NodeId>(static_cast<std::size_t>(pick) % facts_.nodes.size());
  auto& fact = facts_.nodes[id];
  if (kind == EventKind::kNodeDown || kind == EventKind::kNodeUp) {
    fact.up = kind == EventKind::kNodeUp;
    cluster_->SetNodeUp(id, fact.up);
    std::erase_if(leavers_, [&](const Leaver& leaver) {
      return cluster_->worker(leaver.ref).place.state != WorkerState::kLeaving;
    });
    return;
  }
  fact.draining = kind == EventKind::kDrain;
  fact.cordoned = kind != EventKind::kUncordon;
  cluster_->SetNodeCordoned(id, fact.cordoned, fact.draining);
}

void World::Apply(const EventDraft& event) {
  const auto kind = KindOf(event);
  switch (kind) {
    case EventKind::kSubmit:
      Submit(MakeJob(event.job, leaves_, "j" + std::to_string(next_job_++)));
      if (event.job.facts > 0) Checkpoint(static_cast<int>(facts_.jobs.size()) - 1);
      break;
    case EventKind::kFinish:
      if (!facts_.jobs.empty()) Finish(static_cast<std::size_t>(event.pick) % facts_.jobs.size());
      break;
    case EventKind::kTimePasses:
      now_ms_ += (event.pick + 1) * 10 * kSecondMs;
      break;
    case EventKind::kCheckpoint:
      Checkpoint(event.pick);
      break;
    case EventKind::kWorkerSucceeds:
      EndWorker(event.pick, WorkerState::kSucceeded);
      break;
    case EventKind::kWorkerFails:
      EndWorker(event.pick, WorkerState::kFailed);
      break;
    case EventKind::kHold: {
      if (facts_.jobs.empty()) break;
      auto& fact = facts_.jobs[static_cast<std::size_t>(event.pick) % facts_.jobs.size()];
      fact.on_hold = !fact.on_hold;
      cluster_->SetHold(cluster_->FindJob(fact.spec.name), fact.on_hold);
      break;
    }
    case EventKind::kNodeDown:
    case EventKind::kNodeUp:
    case EventKind::kCordon:
    case EventKind::kDrain:
    case EventKind::kUncordon:
      SetNode(event.pick, kind);
      break;
  }
}

model::Plan World::Cycle(int slow) {
  std::erase_if(leavers_, [this](Leaver& leaver) {
    if (leaver.cycles-- > 0) return false;
    cluster_->ReportLeft(leaver.ref);
    return true;
  });
  now_ms_ += kSecondMs;
  const auto plan = scheduler_->Cycle(now_ms_);
  for (const auto& action : plan.actions) {
    if (action.kind == ActionKind::kStart || action.kind == ActionKind::kGrow) continue;
    leavers_.push_back({{action.job, action.worker}, cluster_->job(action.job).name, slow});
  }
  return plan;
}

void World::LetAllLeave() {
  for (const auto& leaver : leavers_) cluster_->ReportLeft(leaver.ref);
  leavers_.clear();
}

int World::Settle(int most, std::int64_t step_ms,
                  const std::function<void(const model::Plan&)>& look) {
  int busy = 0, quiet = 0;
  while (busy < most) {
    LetAllLeave();
    now_ms_ += step_ms - kSecondMs;
    const auto plan = Cycle(0);
    look(plan);
    ++(plan.empty() ? quiet : busy);
    if (!plan.empty()) {
      quiet = 0;
    } else if (plan.complete || quiet > kLongestWait) {
      return busy;
    }
  }
  return -1;
}

Facts World::Snapshot() const {
  Facts facts = facts_;
  for (auto& fact : facts.jobs) {
    const auto& job = cluster_->job(cluster_->FindJob(fact.spec.name));
    fact.stale_since_ms = job.stale_since_ms;
    for (const auto& worker : job.workers) {
      const auto& place = worker.place;
      const auto node =
          place.bank == engine::kNone ? engine::kNone : cluster_->nodes().bank(place.bank).node;
      fact.workers.push_back({place.state, node, place.devices, worker.started_ms});
    }
  }
  return facts;
}

std::string Describe(const model::Plan& plan, const Cluster& cluster) {
  std::string out;
  const auto node = [&](std::uint32_t id) { return cluster.nodes().spec(id).name; };
  for (const auto& action : plan.actions) {
    out += std::string(model::Name(action.kind)) + " " +
           cluster.WorkerName({action.job, action.worker}) + " " + node(action.node) + ":" +
           std::to_string(action.devices) + " " + std::string(model::Name(action.rule));
    if (action.kind == ActionKind::kMove) out += " to " + node(action.to_node);
    if (action.cause != action.job) out += " for " + cluster.job(action.cause).name;
    out += "\n";
  }
  for (const auto& promise : plan.promises) {
    out += "promise " + cluster.WorkerName({promise.job, promise.worker}) + " " +
           node(promise.node) + "\n";
  }
  return out;
}

}  // namespace muster::properties

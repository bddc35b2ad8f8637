#include "engine/cluster.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/units.h"

namespace muster::engine {

std::uint32_t JobState::Surplus() const {
  std::uint32_t surplus = 0;
  for (const auto& group : groups) {
    if (group.leaf && group.active > group.minimum) surplus += group.active - group.minimum;
  }
  return surplus;
}

Result<std::unique_ptr<Cluster>> Cluster::Make(Setup setup) {
  if (setup.countables.size() > kMaxHostDims - kFirstHostOther) {
    return Fail(ErrorCode::kInvalid, "too many kinds of countable resources",
                "at most " + std::to_string(kMaxHostDims - kFirstHostOther) + " are supported");
  }
  auto queues = QueueTable::Make(UnderPolicy(setup.queues, setup.policy), setup.countables);
  if (!queues) return tl::unexpected(queues.error());
  std::unique_ptr<Cluster> cluster(new Cluster());
  cluster->policy_ = setup.policy;
  cluster->nodes_ = std::make_unique<NodeTable>(setup.countables);
  cluster->topology_ = std::make_unique<TopologyTable>(setup.topologies);
  cluster->queues_ = std::make_unique<QueueTable>(std::move(*queues));
  cluster->running_in_.resize(cluster->queues_->size());
  cluster->victim_priorities_.resize(cluster->queues_->size());
  cluster->unsettled_.resize(cluster->queues_->size(), kAllSteps);
  cluster->above_.resize(cluster->queues_->size(), 0);
  cluster->started_.resize(cluster->queues_->size(), 1);
  cluster->surplus_in_.resize(cluster->queues_->size(), 0);
  cluster->changes_in_.resize(cluster->queues_->size(), 1);
  cluster->shapes_ = std::make_unique<ShapeTable>(*cluster->nodes_, *cluster->topology_);
  const Policy& policy = cluster->policy_;
  cluster->worth_ = std::make_unique<WorthIndex>(
      *cluster->nodes_, *cluster->shapes_,
      WorthRules{policy.place_by_worth, policy.worth_offers, policy.worth_step_milli},
      DeviceRules{policy.link_distance, policy.spare_islands, policy.near_nic, false});
  return cluster;
}

Result<NodeId> Cluster::AddNode(const model::Node& added) {
  model::Node node = added;
  if (!policy_.cordon) node.cordoned = node.draining = false;
  if (node.gpus.size() > 64) {
    return Fail(ErrorCode::kInvalid, "node " + node.name + " has more than 64 GPUs");
  }
  if (!node_by_name_.emplace(node.name, static_cast<NodeId>(nodes_->size())).second) {
    return Fail(ErrorCode::kConflict, "node " + node.name + " is there already");
  }
  const auto types = nodes_->type_count();
  const auto smallest = nodes_->smallest_device_memory();
  const NodeId id = nodes_->Add(node);
  topology_->AddNode(id, node);
  on_node_.emplace_back();
  if (node.draining) draining_.push_back(id);
  while (type_dims_.size() < nodes_->type_count()) {
    type_dims_.push_back(
        queues_->FindDim(nodes_->type_name(static_cast<TypeId>(type_dims_.size()))));
  }
  shapes_->NodeAdded(id);
  if (types != nodes_->type_count() || smallest != nodes_->smallest_device_memory()) RefreshCosts();
  left_over_.resize(nodes_->bank_count());
  NodeReturns(id);
  return id;
}

// What waiting workers would cost depends on the smallest GPU and on the types that are known.
void Cluster::RefreshCosts() {
  const auto add_requests = [this](int sign) {
    for (JobId id = 0; id < jobs_.size(); ++id) {
      if (!jobs_[id].present) continue;
      for (const auto& worker : jobs_[id].workers) AddRequest(id, worker, sign);
    }
  };
  add_requests(-1);
  shapes_->RefreshCosts(queues_->dims(), type_dims_, queues_->first_countable_dim());
  add_requests(+1);
  for (auto& job_class : classes_) {
    job_class.cost = Vec{};
    for (const auto& need : job_class.needs) {
      for (std::uint32_t i = 0; i < need.count; ++i) {
        job_class.cost.Add((*shapes_)[need.shape].cost, queues_->dims());
      }
    }
  }
}

void Cluster::NodeReturns(NodeId node) {
  const NodeState& state = nodes_->node(node);
  for (std::uint32_t i = 0; i < state.bank_count; ++i) came_free_.push_back(state.first_bank + i);
}

void Cluster::NodeLeaves(NodeId node) {
  const NodeState& state = nodes_->node(node);
  for (std::uint32_t i = 0; i < state.bank_count; ++i) left_over_[state.first_bank + i] = {};
}

void Cluster::SetNodeUp(NodeId node, bool up) {
  if (!up) {
    const std::vector<WorkerRef> lost = on_node_[node];
    for (const auto& ref : lost) {
      Move(ref, Place{});
      RefreshWaiting(ref.job);
    }
    ForgetLog();
  }
  ++facts_for_sizes_;
  nodes_->SetUp(node, up);
  if (up) {
    NodeReturns(node);
  } else {
    NodeLeaves(node);
  }
}

void Cluster::SetNodeCordoned(NodeId node, bool cordoned, bool draining) {
  if (!policy_.cordon) return;
  ++facts_for_sizes_;
  nodes_->SetCordoned(node, cordoned, draining);
  if (cordoned) {
    NodeLeaves(node);
  } else {
    NodeReturns(node);
  }
  std::erase(draining_, node);
  if (draining) draining_.insert(std::lower_bound(draining_.begin(), draining_.end(), node), node);
}

void Cluster::SetHold(JobId job, bool on_hold) {
  const auto add_requests = [&](int sign) {
    for (const auto& worker : jobs_[job].workers) AddRequest(job, worker, sign);
  };
  add_requests(-1);
  if (jobs_[job].on_hold != on_hold) ++facts_for_sizes_;
  jobs_[job].on_hold = on_hold;
  add_requests(+1);
  RefreshWaiting(job);
}

void Cluster::SetStaleSince(JobId job, std::int64_t since_ms) {
  jobs_[job].stale_since_ms = since_ms;
}

void Cluster::ReportCheckpoint(JobId job, std::int64_t at_ms) {
  jobs_[job].checkpoint_ms = at_ms;
  ++changes_in_[jobs_[job].queue];
}

void Cluster::ReportSpeed(JobId job, const JobSpeed& speed) {
  jobs_[job].speed = std::make_unique<JobSpeed>(speed);
  ++facts_for_sizes_;
}

void Cluster::ReportResizeCost(JobId job, std::int64_t ms) { jobs_[job].resize_ms = ms; }

void Cluster::SetPastUse(QueueId queue, std::int64_t gpu_ms) { queues_->SetPastUse(queue, gpu_ms); }

Result<void> Cluster::ReportWorker(WorkerRef ref, WorkerState state, NodeId node,
                                   std::uint64_t devices, std::int64_t started_ms) {
  Worker& worker = jobs_[ref.job].workers[ref.index];
  Place place;
  place.state = state;
  const bool holds = place.Holds() || state == WorkerState::kLeaving;
  if (holds) {
    if (node >= nodes_->size()) return Fail(ErrorCode::kNotFound, "no such node");
    place.bank = nodes_->BankOfDevices(node, devices);
    if ((devices & ~nodes_->bank(place.bank).mask) != 0) {
      return Fail(ErrorCode::kInvalid, "node " + nodes_->spec(node).name + " has no such GPUs",
                  "GPUs of one type, numbered from 0");
    }
    place.devices = devices;
    place.charge_milli = shapes_->ChargeOn((*shapes_)[worker.shape], nodes_->bank(place.bank));
  }
  if (worker.place.bank != kNone) came_free_.push_back(worker.place.bank);
  Move(ref, place);
  SetStarted(ref, started_ms);
  ForgetLog();
  RefreshWaiting(ref.job);
  return {};
}

void Cluster::ReportLeft(WorkerRef ref) {
  MUSTER_CHECK(worker(ref).place.state == WorkerState::kLeaving, "only a leaving worker leaves");
  came_free_.push_back(worker(ref).place.bank);
  Move(ref, Place{});
  ForgetLog();
  RefreshWaiting(ref.job);
}

JobId Cluster::FindJob(const std::string& name) const {
  const auto found = job_by_name_.find(name);
  return found == job_by_name_.end() ? kNone : found->second;
}

NodeId Cluster::FindNode(const std::string& name) const {
  const auto found = node_by_name_.find(name);
  return found == node_by_name_.end() ? kNone : found->second;
}

TypeId Cluster::TypeOf(JobId job) const {
  for (const auto& worker : jobs_[job].workers) {
    if (worker.place.Holds() && worker.place.devices != 0) {
      return nodes_->bank(worker.place.bank).type;
    }
  }
  return kNone;
}

std::string Cluster::WorkerName(WorkerRef ref) const {
  return jobs_[ref.job].name + "/" + std::to_string(ref.index);
}

Vec Cluster::CostOf(WorkerRef ref) const {
  const Worker& w = worker(ref);
  const Shape& shape = (*shapes_)[w.shape];
  if (w.place.bank == kNone) return shape.cost;
  Vec cost = shape.cost;
  cost[kGpuDim] = w.place.charge_milli;
  for (std::size_t d = kFirstNamedDim; d < queues_->first_countable_dim(); ++d) cost[d] = 0;
  const TypeId type = nodes_->bank(w.place.bank).type;
  if (type != kNone && type_dims_[type] < queues_->dims()) {
    cost[type_dims_[type]] = w.place.charge_milli;
  }
  return cost;
}

std::int64_t Cluster::LostWorkMs(const JobState& job, std::int64_t gpu_milli,
                                 std::int64_t now_ms) const {
  std::int64_t since = job.checkpoint_ms;
  if (since < 0 && job.checkpoint_every_ms > 0) since = now_ms - job.checkpoint_every_ms / 2;
  if (since < 0) return -1;
  const auto age = std::max<std::int64_t>(0, now_ms - since) + job.restart_cost_ms;
  return age * gpu_milli / kMilli;
}

ModeSet Cluster::ModesOf(const JobState& job, const Place& place) const {
  if (place.state == WorkerState::kLeaving) return In(Mode::kFree);
  const bool taken_for_good =
      place.promised || place.state == WorkerState::kStuck || !job.preemptible;
  return taken_for_good ? kInAll : static_cast<ModeSet>(In(Mode::kFree) | In(Mode::kFuture));
}

void Cluster::CountActive(JobState& job, std::uint32_t group, int sign) {
  GroupState* state = &job.groups[group];
  bool before = state->Satisfied();
  const bool surplus = sign > 0 ? state->active >= state->minimum : state->active > state->minimum;
  if (surplus && job.preemptible) surplus_in_[job.queue] += sign;
  state->active = static_cast<std::uint32_t>(static_cast<int>(state->active) + sign);
  while (before != state->Satisfied() && state->parent != kNone) {
    GroupState* parent = &job.groups[state->parent];
    before = parent->Satisfied();
    const bool spare =
        sign > 0 ? parent->satisfied >= parent->minimum : parent->satisfied > parent->minimum;
    if (spare && job.preemptible) surplus_in_[job.queue] += sign;
    parent->satisfied = static_cast<std::uint32_t>(static_cast<int>(parent->satisfied) + sign);
    state = parent;
  }
}

// Adds (sign +1) or takes back what a worker at its place means to everything that counts it.
void Cluster::Contribute(JobId id, const Worker& worker, int sign) {
  JobState& job = jobs_[id];
  ++changes_in_[job.queue];
  NoteEnd(id);
  const auto count = [sign](std::uint32_t& value) {
    value = static_cast<std::uint32_t>(static_cast<int>(value) + sign);
  };
  const Place& place = worker.place;
  switch (place.state) {
    case WorkerState::kPending:
      count(job.pending);
      break;
    case WorkerState::kLeaving:
      count(job.leaving);
      break;
    case WorkerState::kSucceeded:
      count(job.succeeded);
      CountActive(job, worker.group, sign);
      break;
    case WorkerState::kFailed:
      break;
    case WorkerState::kRunning:
    case WorkerState::kStuck:
      count(job.active);
      CountActive(job, worker.group, sign);
      break;
  }
  AddRequest(id, worker, sign);
  if (job.preemptible && (job.active > 0) != (job.running_position != kNone)) {
    auto& priorities = victim_priorities_[job.queue];
    if (job.active > 0) {
      ++priorities[job.priority];
    } else if (--priorities[job.priority] == 0) {
      priorities.erase(job.priority);
    }
  }
  Enlist(running_in_[job.queue], id, &JobState::running_position, job.active > 0);
  Enlist(broken_, id, &JobState::broken_position, job.active > 0 && !job.Satisfied());
  if (place.left_bank != kNone) {
    Occupy(id, worker, place.left_bank, place.left_devices, In(Mode::kFree), sign);
  }
  if (!place.Holds() && place.state != WorkerState::kLeaving) return;
  Occupy(id, worker, place.bank, place.devices, ModesOf(job, place), sign);
  if (!place.Holds()) return;
  const auto index = static_cast<std::uint32_t>(&worker - job.workers.data());
  queues_->AddHeld(job.queue, CostOf({id, index}), !job.preemptible, sign);
}

// Puts the job on a list or takes it off; the job knows its position, the order means nothing.
void Cluster::Enlist(std::vector<JobId>& list, JobId id, std::uint32_t JobState::*position,
                     bool on_list) {
  std::uint32_t& here = jobs_[id].*position;
  if (on_list == (here != kNone)) return;
  if (on_list) {
    here = static_cast<std::uint32_t>(list.size());
    list.push_back(id);
    return;
  }
  list[here] = list.back();
  jobs_[list.back()].*position = here;
  list.pop_back();
  here = kNone;
}

Take Cluster::TakeOf(const Worker& worker, BankId bank, std::uint64_t devices) const {
  const Shape& shape = (*shapes_)[worker.shape];
  Take take;
  take.devices = devices;
  take.whole = shape.spec.request.gpu.kind == model::GpuKind::kWhole;
  take.units = shapes_->UnitsOn(shape, nodes_->bank(bank));
  take.host = shape.host;
  return take;
}

void Cluster::Occupy(JobId id, const Worker& worker, BankId bank_id, std::uint64_t devices,
                     ModeSet modes, int sign) {
  const Bank& bank = nodes_->bank(bank_id);
  nodes_->Occupy(bank_id, TakeOf(worker, bank_id, devices), modes, sign);
  const auto index = static_cast<std::uint32_t>(&worker - jobs_[id].workers.data());
  auto& here = on_node_[bank.node];
  if (sign > 0) {
    here.push_back({id, index});
  } else {
    const auto found = std::find(here.begin(), here.end(), WorkerRef{id, index});
    *found = here.back();
    here.pop_back();
  }
}

void Cluster::AddRequest(JobId id, const Worker& worker, int sign) {
  const Place& place = worker.place;
  if (place.state == WorkerState::kFailed || place.state == WorkerState::kSucceeded) return;
  if (jobs_[id].on_hold && place.state == WorkerState::kPending) return;
  const auto index = static_cast<std::uint32_t>(&worker - jobs_[id].workers.data());
  const Vec cost = place.Holds() ? CostOf({id, index}) : (*shapes_)[worker.shape].request;
  queues_->AddRequest(jobs_[id].queue, cost, sign);
}

void Cluster::Move(WorkerRef ref, const Place& to) {
  Worker& worker = jobs_[ref.job].workers[ref.index];
  ++moves_;
  log_.push_back({ref, worker.place});
  Contribute(ref.job, worker, -1);
  worker.place = to;
  Contribute(ref.job, worker, +1);
}

void Cluster::Leave(WorkerRef ref) {
  const Place& now = worker(ref).place;
  Place to;
  if (!now.fresh) {
    to.left_bank = now.bank;
    to.left_devices = now.devices;
  }
  Move(ref, to);
}

void Cluster::RollbackTo(Mark mark) {
  while (log_.size() > mark) {
    ++moves_;
    const LogEntry entry = log_.back();
    log_.pop_back();
    Worker& worker = jobs_[entry.ref.job].workers[entry.ref.index];
    Contribute(entry.ref.job, worker, -1);
    worker.place = entry.before;
    Contribute(entry.ref.job, worker, +1);
  }
}

std::span<const WorkerRef> Cluster::TouchedSince(Mark mark, std::vector<WorkerRef>& storage) const {
  storage.clear();
  for (std::size_t i = mark; i < log_.size(); ++i) storage.push_back(log_[i].ref);
  std::sort(storage.begin(), storage.end());
  storage.erase(std::unique(storage.begin(), storage.end()), storage.end());
  return storage;
}

void Cluster::ListChanges(std::vector<std::pair<WorkerRef, Place>>& out) const {
  out.clear();
  for (const auto& entry : log_) out.emplace_back(entry.ref, entry.before);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
}

void Cluster::SetHints(std::span<const std::pair<WorkerRef, BankId>> hints) {
  for (const auto& ref : hinted_) {
    auto& workers = jobs_[ref.job].workers;
    if (ref.index < workers.size()) workers[ref.index].hint = kNone;
  }
  hinted_.clear();
  for (const auto& [ref, bank] : hints) {
    jobs_[ref.job].workers[ref.index].hint = bank;
    hinted_.push_back(ref);
  }
}

bool Cluster::RoomIsFree(WorkerRef ref) const {
  const Place& place = worker(ref).place;
  const NodeState& node = nodes_->node_of(place.bank);
  const auto now = static_cast<std::size_t>(Mode::kFree);
  if (node.workers[now] > node.max_workers) return false;
  for (std::size_t d = 0; d < nodes_->host_dims(); ++d) {
    if (node.used[now][d] > node.capacity[d]) return false;
  }
  const Bank& bank = nodes_->bank(place.bank);
  const bool whole = (*shapes_)[worker(ref).shape].spec.request.gpu.kind == model::GpuKind::kWhole;
  for (std::uint64_t rest = place.devices; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(rest));
    const Device& device = nodes_->device(bank.node, index);
    if (whole ? device.occupants[now] > 1 : device.used[now] > bank.memory) return false;
  }
  return true;
}

void Cluster::NoteChanged(QueueId queue) {
  unsettled_[queue] = kAllSteps;
  changed_queues_.push_back(queue);
}

void Cluster::TakeChangedQueues(std::vector<QueueId>& out) {
  out.clear();
  out.swap(changed_queues_);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

// Grows with what a bank has left: GPUs and room on shared ones, or cores where there are no GPUs.
Cluster::Remainder Cluster::LeftOver(BankId id) const {
  const Bank& bank = nodes_->bank(id);
  if (!nodes_->node(bank.node).Usable()) return {};
  const auto future = static_cast<std::size_t>(Mode::kFuture);
  Remainder left;
  left.cores = nodes_->HostFree(bank.node, kHostCpu, Mode::kFuture);
  left.memory = nodes_->HostFree(bank.node, kHostMemory, Mode::kFuture);
  if (bank.type == kNone) return left;
  left.gpus = std::int64_t{100} * std::popcount(bank.unoccupied[future]) +
              std::int64_t{NodeTable::RoomClass(bank.max_room[future], bank.memory)};
  return left;
}

void Cluster::Unsettle() {
  bool room = false;
  for (const BankId bank : came_free_) {
    const auto left = LeftOver(bank);
    room |= left.Exceeds(left_over_[bank]);
    left_over_[bank] = left;
  }
  came_free_.clear();
  bool victims = queues_->TakeSharesChanged();
  for (const QueueId q : queues_->widest_first()) {
    if (q == 0) continue;
    const QueueState& queue = (*queues_)[q];
    std::uint8_t above = above_[queue.parent];
    for (std::size_t d = 0; d < queues_->dims() && above == 0; ++d) {
      above = queue.held[d] > queue.share[d] ? 1 : 0;
    }
    const bool leaf = queue.children.empty();
    victims |= leaf && above != 0 && (above_[q] == 0 || started_[q] != 0);
    above_[q] = above;
    started_[q] = 0;
  }
  if (room) unsettled_classes_.assign(unsettled_classes_.size(), true);
  const auto hope = static_cast<std::uint8_t>(room      ? kAllSteps
                                              : victims ? Bit(Step::kShrink) | Bit(Step::kReclaim)
                                                        : 0);
  if (hope == 0) return;
  for (auto& queue : unsettled_) queue |= hope;
}

void Cluster::UnsettleAll() {
  unsettled_.assign(unsettled_.size(), kAllSteps);
  unsettled_classes_.assign(unsettled_classes_.size(), true);
}

void Cluster::DivideShares() {
  Vec total;
  total[kGpuDim] = nodes_->usable_gpus() * kMilli;
  total[kCpuDim] = nodes_->usable_host()[kHostCpu];
  total[kMemoryDim] = nodes_->usable_host()[kHostMemory];
  for (TypeId type = 0; type < type_dims_.size(); ++type) {
    if (type_dims_[type] < queues_->dims()) {
      total[type_dims_[type]] = nodes_->usable_gpus(type) * kMilli;
    }
  }
  for (std::size_t i = 0; i < nodes_->host_names().size(); ++i) {
    total[queues_->first_countable_dim() + i] = nodes_->usable_host()[kFirstHostOther + i];
  }
  queues_->DivideShares(total, policy_.decay_half_life_ms == 0 ? 0 : policy_.decay_strength_milli);
}

}  // namespace muster::engine

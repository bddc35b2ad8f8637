// How jobs enter and leave the Cluster, their classes, and the canonical dump.
#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "engine/cluster.h"

namespace muster::engine {

Wish Cluster::Resolve(const model::TopologyWish& wish) const {
  Wish out;
  if (!policy_.topology_wishes) return out;
  const auto find = [&](const std::string& level, LevelId& into) {
    if (level.empty()) return;
    into = topology_->Find(wish.topology, level);
    out.missing |= into == kNone;
  };
  find(wish.require, out.require);
  find(wish.prefer, out.prefer);
  if (!wish.topology.empty()) {
    bool known = false;
    for (LevelId id = 0; id < topology_->level_count(); ++id) {
      known |= topology_->level(id).topology == wish.topology;
    }
    out.missing |= !known;
  }
  return out;
}

// Where the worker may go: what the role asks for, cut down by its job, its queues and its kind.
ShapeSpec Cluster::SpecOf(const model::Job& job, const model::Role& role, QueueId queue) const {
  ShapeSpec spec;
  spec.request = role.request;
  if (policy_.gpu_type_wishes) spec.gpu_types = role.gpu_types;
  spec.labels = job.nodes;
  spec.node_names = role.node_names;
  spec.same_device = job.same_device || !policy_.members_apart;
  const auto confine = [&spec](const model::Confinement& to) {
    if (!to.gpu_types.empty()) {
      std::vector<std::string> both;
      for (const auto& type : spec.gpu_types.empty() ? to.gpu_types : spec.gpu_types) {
        if (std::find(to.gpu_types.begin(), to.gpu_types.end(), type) != to.gpu_types.end()) {
          both.push_back(type);
        }
      }
      spec.nowhere |= both.empty() && spec.request.gpu.kind != model::GpuKind::kNone;
      spec.gpu_types = std::move(both);
    }
    for (const auto& [key, value] : to.nodes) {
      const auto [found, added] = spec.labels.emplace(key, value);
      spec.nowhere |= !added && found->second != value;
    }
  };
  for (QueueId q = policy_.confinement ? queue : 0; q != 0; q = (*queues_)[q].parent) {
    const auto& queue_spec = queues_->spec(q);
    confine(queue_spec.confinement);
    const auto rule = queue_spec.kinds.find(job.kind);
    if (rule != queue_spec.kinds.end()) confine(rule->second.confinement);
  }
  return spec;
}

Result<void> Cluster::AddGroups(const model::Job& job, JobState& state) const {
  if (job.groups.empty() || job.roles.empty()) {
    return Fail(ErrorCode::kInvalid, "job " + job.name + " has no workers");
  }
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    const auto& group = job.groups[i];
    GroupState out;
    if (i > 0) {
      if (group.parent < 0 || static_cast<std::size_t>(group.parent) >= i) {
        return Fail(ErrorCode::kInvalid,
                    "group " + group.name + " of " + job.name + " comes before its parent");
      }
      out.parent = static_cast<std::uint32_t>(group.parent);
      state.groups[out.parent].children.push_back(static_cast<std::uint32_t>(i));
      state.groups[out.parent].leaf = false;
    }
    out.minimum = static_cast<std::uint32_t>(std::max(0, group.minimum));
    out.wish = Resolve(group.topology);
    state.groups.push_back(std::move(out));
  }
  for (const auto& role : job.roles) {
    if (role.group < 0 || static_cast<std::size_t>(role.group) >= state.groups.size() ||
        !state.groups[static_cast<std::size_t>(role.group)].leaf) {
      return Fail(ErrorCode::kInvalid,
                  "role " + role.name + " of " + job.name + " is in no leaf group");
    }
  }
  return {};
}

JobId Cluster::PutIntoSlot(JobState state) {
  if (free_slots_.empty()) {
    jobs_.push_back(std::move(state));
    return static_cast<JobId>(jobs_.size() - 1);
  }
  const JobId id = free_slots_.back();
  free_slots_.pop_back();
  jobs_[id] = std::move(state);
  return id;
}

Result<JobId> Cluster::AddJob(const model::Job& job, std::int64_t submitted_ms,
                              const std::string& known_as) {
  const std::string& name = known_as.empty() ? job.name : known_as;
  const QueueId queue = queues_->Find(job.queue);
  if (queue == kNone) return Fail(ErrorCode::kNotFound, "there is no queue " + job.queue);
  if (!(*queues_)[queue].children.empty()) {
    return Fail(ErrorCode::kInvalid, "queue " + job.queue + " has queues below it",
                "name one of them");
  }
  if (job_by_name_.contains(name)) {
    return Fail(ErrorCode::kConflict, "job " + name + " is there already");
  }
  JobState state;
  state.name = name;
  state.sequence = next_sequence_++;
  state.added_in = cycles_;
  state.queue = queue;
  state.priority = job.priority;
  const bool fixed_build = job.kind == model::JobKind::kBuild && policy_.fixed_builds;
  state.preemptible = !policy_.fixed_work || (job.preemptible && !fixed_build);
  state.submitted_ms = submitted_ms;
  state.preemption_delay_ms = policy_.preemption_delay ? job.preemption_delay_ms : 0;
  state.stale_grace_ms = job.stale_grace_ms;
  state.restart_cost_ms = job.checkpoint.restart_cost_ms;
  state.checkpoint_every_ms = job.checkpoint.every_ms;
  if (auto added = AddGroups(job, state); !added) return tl::unexpected(added.error());
  for (std::uint32_t g = 0; g < state.groups.size(); ++g) {
    if (!state.groups[g].leaf) continue;
    state.groups[g].first_worker = static_cast<std::uint32_t>(state.workers.size());
    std::vector<const model::Role*> roles;
    for (const auto& role : job.roles) {
      if (role.group == static_cast<int>(g)) roles.push_back(&role);
    }
    std::stable_sort(roles.begin(), roles.end(),
                     [](const auto* a, const auto* b) { return a->priority > b->priority; });
    for (const auto* role : roles) {
      Worker worker;
      worker.shape = shapes_->Intern(SpecOf(job, *role, queue), queues_->dims(), type_dims_,
                                     queues_->first_countable_dim());
      worker.group = g;
      worker.role = static_cast<std::uint32_t>(role - job.roles.data());
      worker.priority = role->priority;
      if (role->request.gpu.kind == model::GpuKind::kNone) nodes_->KeepCoreIndex();
      state.workers.insert(state.workers.end(), static_cast<std::size_t>(role->count), worker);
    }
    state.groups[g].worker_count =
        static_cast<std::uint32_t>(state.workers.size()) - state.groups[g].first_worker;
  }
  // A group that needs nothing is satisfied from the start; tell its ancestors, deepest first.
  for (std::size_t g = state.groups.size(); g-- > 1;) {
    if (state.groups[g].Satisfied()) ++state.groups[state.groups[g].parent].satisfied;
  }
  const JobId id = PutIntoSlot(std::move(state));
  job_by_name_.emplace(name, id);
  ++facts_for_sizes_;
  for (const auto& worker : jobs_[id].workers) {
    Contribute(id, worker, +1);
    shapes_->AddDemand(worker.shape, +1);
  }
  jobs_[id].fresh_class = InternFresh(jobs_[id]);
  SetExpected(id, job.limits.time_ms > 0 ? job.limits.time_ms : -1);
  RefreshWaiting(id);
  return id;
}

void Cluster::RemoveJob(JobId id) {
  MUSTER_CHECK(jobs_[id].present, "a job is removed once");
  waiting_.Erase(id);
  for (const auto& worker : jobs_[id].workers) {
    if (worker.place.bank != kNone) came_free_.push_back(worker.place.bank);
    Contribute(id, worker, -1);
    shapes_->AddDemand(worker.shape, -1);
  }
  NoteChanged(jobs_[id].queue);
  ++facts_for_sizes_;
  job_by_name_.erase(jobs_[id].name);
  jobs_[id] = JobState{};
  jobs_[id].present = false;
  free_slots_.push_back(id);
}

void Cluster::ForEachNeed(const JobState& job, std::uint32_t group, JobClass& out) const {
  const GroupState& state = job.groups[group];
  if (!state.leaf) {
    out.exact = false;
    if (state.minimum < state.children.size()) return;  // a choice: nothing is certain
    for (const auto child : state.children) ForEachNeed(job, child, out);
    return;
  }
  for (std::uint32_t i = 0; i < std::min(state.minimum, state.worker_count); ++i) {
    const ShapeId shape = job.workers[state.first_worker + i].shape;
    out.cost.Add((*shapes_)[shape].cost, queues_->dims());
    if (!out.needs.empty() && out.needs.back().shape == shape) {
      ++out.needs.back().count;
    } else {
      out.needs.push_back({shape, 1});
    }
  }
}

ClassId Cluster::InternFresh(const JobState& job) {
  std::vector<std::int64_t> key = {job.preemptible ? 1 : 0};
  for (const auto& group : job.groups) {
    key.insert(key.end(), {-1, group.parent, group.minimum, group.wish.require, group.wish.prefer,
                           group.wish.missing ? 1 : 0});
  }
  const Worker* last = nullptr;
  for (const auto& worker : job.workers) {
    if (last != nullptr && last->shape == worker.shape && last->group == worker.group) {
      ++key.back();
    } else {
      key.insert(key.end(), {-2, worker.group, worker.shape, 1});
    }
    last = &worker;
  }
  const auto [found, added] =
      class_by_key_.try_emplace(std::move(key), static_cast<ClassId>(classes_.size()));
  if (added) {
    JobClass made;
    made.exact = true;
    ForEachNeed(job, 0, made);
    const auto& wish = job.groups[0].wish;
    const bool wished = wish.missing || wish.require != kNone;
    made.exact = made.exact && made.needs.size() <= 1 && !wished;
    if (made.needs.size() == 1) {
      const auto& gpu = (*shapes_)[made.needs[0].shape].spec.request.gpu;
      made.exact &= gpu.kind == model::GpuKind::kWhole || gpu.devices == 1;
    }
    AddClass(std::move(made));
  }
  return found->second;
}

void Cluster::AddClass(JobClass made) {
  classes_.push_back(std::move(made));
  unsettled_classes_.push_back(true);
}

ClassId Cluster::InternExtra(ShapeId shape) {
  const auto [found, added] = class_by_key_.try_emplace(std::vector<std::int64_t>{-3, shape},
                                                        static_cast<ClassId>(classes_.size()));
  if (added) {
    JobClass made;
    made.needs.push_back({shape, 1});
    made.cost = (*shapes_)[shape].cost;
    AddClass(std::move(made));
  }
  return found->second;
}

ClassId Cluster::ClassOf(JobId id) {
  const JobState& job = jobs_[id];
  if (job.active + job.leaving + job.succeeded == 0 && job.pending == job.workers.size()) {
    return job.fresh_class;
  }
  for (const auto& worker : job.workers) {
    if (worker.place.state == WorkerState::kPending) return InternExtra(worker.shape);
  }
  return kNone;
}

void Cluster::RefreshWaiting(JobId id) {
  const JobState& job = jobs_[id];
  waiting_.Erase(id);
  if (job.present) NoteChanged(job.queue);
  if (!job.present || job.on_hold || !job.WantsMore()) return;
  const WaitKey key{-job.priority, job.Satisfied() ? 1 + job.Surplus() : 0, job.submitted_ms,
                    job.sequence};
  const ClassId job_class = ClassOf(id);
  unsettled_classes_[job_class] = true;
  waiting_.Insert(job.queue, job_class, key, id);
}

bool Cluster::MayFit(ClassId id, Mode mode) {
  return std::all_of(classes_[id].needs.begin(), classes_[id].needs.end(), [&](const auto& need) {
    return shapes_->Slots(need.shape, mode) >= need.count;
  });
}

std::string Cluster::Dump() const {
  std::string out;
  const auto number = [&out](auto value) { out += std::to_string(value) + " "; };
  for (QueueId q = 0; q < queues_->size(); ++q) {
    const auto& queue = (*queues_)[q];
    out += "queue " + queues_->spec(q).name + " ";
    for (const auto* vec : {&queue.held, &queue.fixed, &queue.request}) {
      for (std::size_t d = 0; d < queues_->dims(); ++d) number((*vec)[d]);
    }
    out += "\n";
  }
  for (NodeId n = 0; n < nodes_->size(); ++n) {
    const auto& node = nodes_->node(n);
    out += "node " + nodes_->spec(n).name + " ";
    number(node.Usable());
    for (std::size_t m = 0; m < kModes; ++m) {
      number(node.workers[m]);
      for (std::size_t d = 0; d < nodes_->host_dims(); ++d) number(node.used[m][d]);
      for (std::uint32_t i = 0; i < node.device_count; ++i) {
        number(nodes_->device(n, i).used[m]);
        number(nodes_->device(n, i).occupants[m]);
      }
      for (std::uint32_t i = 0; i < node.bank_count; ++i) {
        number(nodes_->bank(node.first_bank + i).unoccupied[m]);
        number(nodes_->bank(node.first_bank + i).max_room[m]);
      }
    }
    out += "\n";
  }
  for (const auto& [name, id] : job_by_name_) {
    const auto& job = jobs_[id];
    out += "job " + name + " ";
    for (const auto value : {job.active, job.pending, job.leaving, job.succeeded}) number(value);
    if (job.target != kNone) number(job.target);
    for (const auto& group : job.groups) {
      number(group.active);
      number(group.satisfied);
    }
    number(waiting_.Contains(id));
    for (const auto& worker : job.workers) {
      number(static_cast<int>(worker.place.state));
      number(worker.place.bank);
      number(worker.place.devices);
      number(worker.place.charge_milli);
    }
    out += "\n";
  }
  return out;
}

}  // namespace muster::engine

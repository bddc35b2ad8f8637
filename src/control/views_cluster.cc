#include "control/views.h"

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "control/view_parts.h"
#include "model/queue_codec.h"

namespace muster::control {

using model::BoolNode;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;
using state::JobRecord;

namespace {

DocNode Listed(const char* key, DocNode list) {
  DocNode node = MapNode();
  Put(node, key, std::move(list));
  return node;
}

std::int64_t GpusInUse(const engine::Cluster& cluster, const std::string& name) {
  const auto id = cluster.FindNode(name);
  if (id == engine::kNone) return 0;
  std::int64_t used = 0;
  for (std::uint32_t i = 0; i < cluster.nodes().node(id).device_count; ++i) {
    used += cluster.nodes().device(id, i).occupants[0] > 0 ? 1 : 0;
  }
  return used;
}

}  // namespace

DocNode NodeView(Controller& control, const state::NodeRecord& record) {
  const auto& cluster = control.engine().cluster();
  const auto& spec = record.node;
  DocNode node = MapNode();
  Put(node, "name", TextNode(spec.name));
  Put(node, "pool", TextNode(spec.pool));
  Put(node, "state",
      TextNode(!record.up      ? "down"
               : spec.draining ? "draining"
               : spec.cordoned ? "cordoned"
                               : "ready"));
  if (!record.why.empty()) Put(node, "why", TextNode(record.why));
  std::map<std::string, std::int64_t> types;
  for (const auto& gpu : spec.gpus) ++types[gpu.type.empty() ? "gpu" : gpu.type];
  DocNode gpus = MapNode();
  for (const auto& [type, count] : types) Put(gpus, type, NumberNode(count));
  Put(node, "gpus", std::move(gpus));
  Put(node, "gpus_total", NumberNode(static_cast<std::int64_t>(spec.gpus.size())));
  Put(node, "gpus_in_use", NumberNode(GpusInUse(cluster, spec.name)));
  Put(node, "cpus", Milli(spec.cpu_milli));
  Put(node, "memory_bytes", NumberNode(spec.memory_bytes));
  DocNode nics = ListNode();
  for (const auto& nic : spec.nics) {
    DocNode one = MapNode();
    Put(one, "name", TextNode(nic.name));
    Put(one, "numa", NumberNode(nic.numa));
    nics.children.push_back(std::move(one));
  }
  if (!spec.nics.empty()) Put(node, "nics", std::move(nics));
  Put(node, "labels", model::TextMapNode(spec.labels));
  if (spec.labels.contains("virtual")) Put(node, "virtual", BoolNode(true));
  if (spec.labels.contains("simulated")) Put(node, "simulated", BoolNode(true));
  return node;
}

DocNode NodesView(Controller& control) {
  DocNode list = ListNode();
  for (const auto& [name, record] : control.state().nodes()) {
    list.children.push_back(NodeView(control, record));
  }
  return Listed("nodes", std::move(list));
}

// What a pool has, added up over its nodes.
DocNode PoolsView(Controller& control) {
  struct Pool {
    std::int64_t nodes = 0, ready = 0, gpus = 0, in_use = 0;
    bool is_virtual = false, simulated = false;
  };
  std::map<std::string, Pool> pools;
  const auto& cluster = control.engine().cluster();
  for (const auto& [name, record] : control.state().nodes()) {
    auto& pool = pools[record.node.pool];
    ++pool.nodes;
    pool.ready += record.up && !record.node.cordoned && !record.node.draining ? 1 : 0;
    pool.gpus += static_cast<std::int64_t>(record.node.gpus.size());
    pool.in_use += GpusInUse(cluster, name);
    pool.is_virtual |= record.node.labels.contains("virtual");
    pool.simulated |= record.node.labels.contains("simulated");
  }
  DocNode list = ListNode();
  for (const auto& [name, pool] : pools) {
    DocNode node = MapNode();
    Put(node, "name", TextNode(name));
    Put(node, "nodes", NumberNode(pool.nodes));
    Put(node, "nodes_ready", NumberNode(pool.ready));
    Put(node, "gpus", NumberNode(pool.gpus));
    Put(node, "gpus_in_use", NumberNode(pool.in_use));
    if (pool.is_virtual) Put(node, "virtual", BoolNode(true));
    if (pool.simulated) Put(node, "simulated", BoolNode(true));
    list.children.push_back(std::move(node));
  }
  return Listed("pools", std::move(list));
}

DocNode TopologyView(Controller& control) {
  const auto& cluster = control.engine().cluster();
  const auto& table = cluster.topology();
  DocNode levels = ListNode();
  for (engine::LevelId id = 0; id < table.level_count(); ++id) {
    const auto& level = table.level(id);
    DocNode domains = ListNode();
    for (const auto& domain : level.domains) {
      std::int64_t gpus = 0;
      for (const auto node : domain.nodes) {
        const auto count = cluster.nodes().node(node).device_count;
        const std::uint64_t all = count >= 64 ? ~0ULL : (1ULL << count) - 1;
        gpus += std::popcount(all & domain.devices);
      }
      DocNode one = MapNode();
      Put(one, "name", TextNode(domain.name));
      Put(one, "nodes", NumberNode(static_cast<std::int64_t>(domain.nodes.size())));
      Put(one, "gpus", NumberNode(gpus));
      domains.children.push_back(std::move(one));
    }
    DocNode node = MapNode();
    Put(node, "level", TextNode(level.name));
    Put(node, "domains", std::move(domains));
    levels.children.push_back(std::move(node));
  }
  return Listed("levels", std::move(levels));
}

DocNode GpusView(Controller& control, const Access& access) {
  std::map<std::pair<std::string, int>, std::vector<const JobRecord*>> holders;
  for (const auto& [id, job] : control.state().jobs()) {
    for (const auto& worker : job.workers) {
      if (!worker.Holds()) continue;
      for (auto mask = worker.devices; mask != 0; mask &= mask - 1) {
        auto& here = holders[{worker.node, std::countr_zero(mask)}];
        if (here.empty() || here.back() != &job) here.push_back(&job);
      }
    }
  }
  DocNode list = ListNode();
  for (const auto& [name, record] : control.state().nodes()) {
    for (std::size_t i = 0; i < record.node.gpus.size(); ++i) {
      const auto& gpu = record.node.gpus[i];
      DocNode node = MapNode();
      Put(node, "node", TextNode(name));
      Put(node, "gpu", NumberNode(static_cast<std::int64_t>(i)));
      Put(node, "type", TextNode(gpu.type));
      Put(node, "memory_bytes", NumberNode(gpu.memory_bytes));
      Put(node, "numa", NumberNode(gpu.numa));
      if (gpu.pcie_switch >= 0) Put(node, "pcie_switch", NumberNode(gpu.pcie_switch));
      if (gpu.nvlink_island >= 0) Put(node, "nvlink_island", NumberNode(gpu.nvlink_island));
      DocNode jobs = ListNode();
      std::int64_t others = 0;
      for (const auto* job : holders[{name, static_cast<int>(i)}]) {
        if (!access.Sees(job->user, job->spec->queue)) {
          ++others;
          continue;
        }
        DocNode one = MapNode();
        Put(one, "id", TextNode(std::to_string(job->id)));
        Put(one, "name", TextNode(job->name()));
        Put(one, "user", TextNode(job->user));
        Put(one, "queue", TextNode(job->spec->queue));
        jobs.children.push_back(std::move(one));
      }
      Put(node, "jobs", std::move(jobs));
      if (others > 0) Put(node, "others", NumberNode(others));
      if (record.node.labels.contains("virtual")) Put(node, "virtual", BoolNode(true));
      if (record.node.labels.contains("simulated")) Put(node, "simulated", BoolNode(true));
      list.children.push_back(std::move(node));
    }
  }
  return Listed("gpus", std::move(list));
}

namespace {

struct Counts {
  std::int64_t waiting = 0, running = 0;
};

std::map<std::string, Counts> CountJobs(const state::State& state) {
  std::map<std::string, Counts> counts;
  for (const auto& [id, job] : state.jobs()) {
    if (job.ending) continue;
    auto& here = counts[job.spec->queue];
    ++(job.Holds() ? here.running : here.waiting);
  }
  return counts;
}

DocNode QueueNode(Controller& control, const model::Queue& spec, const Counts& counts) {
  const auto& queues = control.engine().cluster().queues();
  DocNode node = MapNode();
  Put(node, "name", TextNode(spec.name));
  const auto id = queues.Find(spec.name);
  if (id != engine::kNone) {
    const auto& queue = queues[id];
    Put(node, "gpu_quota", Milli(queue.quota[engine::kGpuDim]));
    Put(node, "gpu_limit", Milli(queue.limit[engine::kGpuDim]));
    Put(node, "gpus_held", Milli(queue.held[engine::kGpuDim]));
    Put(node, "gpu_fair_share", Milli(queue.share[engine::kGpuDim]));
    Put(node, "gpus_asked", Milli(queue.request[engine::kGpuDim]));
  }
  Put(node, "jobs_running", NumberNode(counts.running));
  Put(node, "jobs_waiting", NumberNode(counts.waiting));
  PutPoolMarks(control, node);
  return node;
}

}  // namespace

DocNode QueuesView(Controller& control, const Access& access) {
  auto counts = CountJobs(control.state());
  DocNode list = ListNode();
  for (const auto& spec : control.state().queues()) {
    if (access.On(spec.name) < Role::kViewer) continue;
    list.children.push_back(QueueNode(control, spec, counts[spec.name]));
  }
  return Listed("queues", std::move(list));
}

DocNode QueueView(Controller& control, const model::Queue& spec) {
  auto counts = CountJobs(control.state());
  DocNode node = QueueNode(control, spec, counts[spec.name]);
  DocNode file = model::QueuesToNode({spec});
  Put(node, "spec", file.children.front());
  return node;
}

}  // namespace muster::control

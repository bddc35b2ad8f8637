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

// What is virtual or simulated says so.
void PutMarks(DocNode& status, const model::Node& node) {
  if (node.labels.contains("virtual")) Put(status, "virtual", BoolNode(true));
  if (node.labels.contains("simulated")) Put(status, "simulated", BoolNode(true));
}

const char* PhaseOf(const state::NodeRecord& record) {
  return !record.up             ? "down"
         : record.node.draining ? "draining"
         : record.node.cordoned ? "cordoned"
                                : "ready";
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
  const auto& given = record.node;
  DocNode node = ObjectNode(given.name, given.name), spec = MapNode(), status = MapNode();
  Put(spec, "pool", TextNode(given.pool));
  Put(spec, "cordoned", BoolNode(given.cordoned));
  Put(spec, "draining", BoolNode(given.draining));
  std::map<std::string, std::int64_t> types;
  for (const auto& gpu : given.gpus) ++types[gpu.type.empty() ? "gpu" : gpu.type];
  DocNode gpus = MapNode();
  for (const auto& [type, count] : types) Put(gpus, type, NumberNode(count));
  Put(spec, "gpus", std::move(gpus));
  Put(spec, "gpus_total", NumberNode(static_cast<std::int64_t>(given.gpus.size())));
  Put(spec, "cpus", Milli(given.cpu_milli));
  Put(spec, "memory_bytes", NumberNode(given.memory_bytes));
  DocNode resources = MapNode();
  for (const auto& [name, amount] : given.other) Put(resources, name, NumberNode(amount));
  if (!given.other.empty()) Put(spec, "resources", std::move(resources));
  DocNode nics = ListNode();
  for (const auto& nic : given.nics) {
    DocNode one = MapNode();
    Put(one, "name", TextNode(nic.name));
    Put(one, "numa", NumberNode(nic.numa));
    nics.children.push_back(std::move(one));
  }
  if (!given.nics.empty()) Put(spec, "nics", std::move(nics));
  Put(status, "phase", TextNode(PhaseOf(record)));
  if (!record.why.empty()) Put(status, "reasons", model::TextListNode({record.why}));
  Put(status, "gpus_in_use", NumberNode(GpusInUse(control.engine().cluster(), given.name)));
  PutMarks(status, given);
  Put(node, "spec", std::move(spec));
  Put(node, "status", std::move(status));
  Put(node, "labels", model::TextMapNode(given.labels));
  PutAge(node, record.joined_ms, record.revision);
  return node;
}

// What a pool has, added up over its nodes.
std::vector<DocNode> PoolsView(Controller& control) {
  struct Pool {
    std::int64_t nodes = 0, ready = 0, gpus = 0, in_use = 0, created_ms = 0;
    std::uint64_t revision = 0;
    bool is_virtual = false, simulated = false;
  };
  std::map<std::string, Pool> pools;
  const auto& cluster = control.engine().cluster();
  for (const auto& [name, record] : control.state().nodes()) {
    auto& pool = pools[record.node.pool];
    if (pool.nodes == 0 || record.joined_ms < pool.created_ms) pool.created_ms = record.joined_ms;
    pool.revision = std::max(pool.revision, record.revision);
    ++pool.nodes;
    pool.ready += record.up && !record.node.cordoned && !record.node.draining ? 1 : 0;
    pool.gpus += static_cast<std::int64_t>(record.node.gpus.size());
    pool.in_use += GpusInUse(cluster, name);
    pool.is_virtual |= record.node.labels.contains("virtual");
    pool.simulated |= record.node.labels.contains("simulated");
  }
  std::vector<DocNode> list;
  for (const auto& [name, pool] : pools) {
    DocNode node = ObjectNode(name, name), spec = MapNode(), status = MapNode();
    Put(spec, "nodes", NumberNode(pool.nodes));
    Put(spec, "gpus", NumberNode(pool.gpus));
    Put(status, "phase", TextNode(pool.ready > 0 ? "ready" : "down"));
    Put(status, "nodes_ready", NumberNode(pool.ready));
    Put(status, "gpus_in_use", NumberNode(pool.in_use));
    if (pool.is_virtual) Put(status, "virtual", BoolNode(true));
    if (pool.simulated) Put(status, "simulated", BoolNode(true));
    Put(node, "spec", std::move(spec));
    Put(node, "status", std::move(status));
    PutAge(node, pool.created_ms, pool.revision);
    list.push_back(std::move(node));
  }
  return list;
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
    DocNode one = MapNode();
    Put(one, "level", TextNode(level.name));
    Put(one, "domains", std::move(domains));
    levels.children.push_back(std::move(one));
  }
  DocNode node = MapNode();
  Put(node, "levels", std::move(levels));
  return node;
}

namespace {

using Holders = std::vector<const JobRecord*>;

std::string GpuId(const state::NodeRecord& record, std::size_t index) {
  return record.node.name + "/" + std::to_string(index);
}

DocNode GpuNode(const state::NodeRecord& record, std::size_t index, const Holders& holders,
                const Access& access) {
  const auto& gpu = record.node.gpus[index];
  const auto id = GpuId(record, index);
  DocNode node = ObjectNode(id, id), spec = MapNode(), status = MapNode();
  Put(spec, "node", TextNode(record.node.name));
  Put(spec, "gpu", NumberNode(static_cast<std::int64_t>(index)));
  Put(spec, "type", TextNode(gpu.type));
  Put(spec, "memory_bytes", NumberNode(gpu.memory_bytes));
  Put(spec, "numa", NumberNode(gpu.numa));
  if (gpu.pcie_switch >= 0) Put(spec, "pcie_switch", NumberNode(gpu.pcie_switch));
  if (gpu.nvlink_island >= 0) Put(spec, "nvlink_island", NumberNode(gpu.nvlink_island));
  DocNode jobs = ListNode();
  std::int64_t others = 0;
  for (const auto* job : holders) {
    if (!access.Sees(job->user, job->spec->queue)) {
      ++others;
      continue;
    }
    DocNode one = ObjectNode(std::to_string(job->id), job->name());
    Put(one, "user", TextNode(job->user));
    Put(one, "queue", TextNode(job->spec->queue));
    jobs.children.push_back(std::move(one));
  }
  Put(status, "phase", TextNode(!holders.empty() ? "held" : record.up ? "free" : "down"));
  Put(status, "jobs", std::move(jobs));
  if (others > 0) Put(status, "others", NumberNode(others));
  PutMarks(status, record.node);
  Put(node, "spec", std::move(spec));
  Put(node, "status", std::move(status));
  PutAge(node, record.joined_ms, record.revision);
  return node;
}

}  // namespace

GpuViews::GpuViews(Controller& control, Access access) : access_(std::move(access)) {
  for (const auto& [name, record] : control.state().nodes()) {
    for (std::size_t i = 0; i < record.node.gpus.size(); ++i) {
      ids_.push_back(GpuId(record, i));
      places_.emplace_back(&record, i);
    }
  }
  for (const auto& [id, job] : control.state().jobs()) {
    for (const auto& worker : job.workers) {
      if (!worker.Holds()) continue;
      for (auto mask = worker.devices; mask != 0; mask &= mask - 1) {
        auto& here = holders_[{worker.node, static_cast<std::size_t>(std::countr_zero(mask))}];
        if (here.empty() || here.back() != &job) here.push_back(&job);
      }
    }
  }
}

DocNode GpuViews::View(std::size_t index) const {
  const auto& [record, gpu] = places_[index];
  const auto held = holders_.find({record->node.name, gpu});
  return GpuNode(*record, gpu, held == holders_.end() ? Holders{} : held->second, access_);
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
  DocNode node = ObjectNode(spec.name, spec.name), status = MapNode();
  const auto id = queues.Find(spec.name);
  if (id != engine::kNone) {
    const auto& queue = queues[id];
    Put(status, "gpu_quota", Milli(queue.quota[engine::kGpuDim]));
    Put(status, "gpu_limit", Milli(queue.limit[engine::kGpuDim]));
    Put(status, "gpus_held", Milli(queue.held[engine::kGpuDim]));
    Put(status, "gpu_fair_share", Milli(queue.share[engine::kGpuDim]));
    Put(status, "gpus_asked", Milli(queue.request[engine::kGpuDim]));
  }
  Put(status, "jobs_running", NumberNode(counts.running));
  Put(status, "jobs_waiting", NumberNode(counts.waiting));
  PutPoolMarks(control, status);
  Put(node, "spec", model::QueuesToNode({spec}).children.front());
  Put(node, "status", std::move(status));
  const auto record = control.state().RecordOf(spec.name);
  PutAge(node, record.created_ms, record.revision);
  return node;
}

}  // namespace

std::vector<DocNode> QueuesView(Controller& control, const Access& access) {
  auto counts = CountJobs(control.state());
  std::vector<DocNode> list;
  for (const auto& spec : control.state().queues()) {
    if (access.On(spec.name) < Role::kViewer) continue;
    list.push_back(QueueNode(control, spec, counts[spec.name]));
  }
  return list;
}

DocNode QueueView(Controller& control, const model::Queue& spec) {
  auto counts = CountJobs(control.state());
  return QueueNode(control, spec, counts[spec.name]);
}

}  // namespace muster::control

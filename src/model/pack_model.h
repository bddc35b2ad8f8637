// Fields of the nouns: how jobs, queues and nodes are packed (see model/pack.h).
//
// New fields go to the end of their list and nothing is ever taken out or reordered: old journals
// are read with these functions.
#pragma once

#include "model/job.h"
#include "model/job_codec.h"
#include "model/node.h"
#include "model/pack.h"
#include "model/queue.h"

namespace muster::model {

template <typename V>
void Fields(V& v, GpuRequest& r) {
  v("kind", r.kind)("devices", r.devices)("share_milli", r.share_milli)("memory_bytes",
                                                                        r.memory_bytes);
}
template <typename V>
void Fields(V& v, WorkerRequest& r) {
  v("gpu", r.gpu)("cpu_milli", r.cpu_milli)("memory_bytes", r.memory_bytes)("other", r.other);
}
template <typename V>
void Fields(V& v, TopologyWish& w) {
  v("topology", w.topology)("require", w.require)("prefer", w.prefer);
}
template <typename V>
void Fields(V& v, Group& g) {
  v("name", g.name)("parent", g.parent)("minimum", g.minimum)("topology", g.topology);
}
template <typename V>
void Fields(V& v, Role& r) {
  v("name", r.name)("group", r.group)("count", r.count)("request", r.request)(
      "gpu_types", r.gpu_types)("node_names", r.node_names)("priority", r.priority);
}
template <typename V>
void Fields(V& v, Checkpoint& c) {
  v("dir", c.dir)("signal", c.signal)("grace_ms", c.grace_ms)("every_ms", c.every_ms)(
      "restart_cost_ms", c.restart_cost_ms);
}
template <typename V>
void Fields(V& v, Limits& l) {
  v("time_ms", l.time_ms)("idle_ms", l.idle_ms)("retries", l.retries);
}
template <typename V>
void Fields(V& v, Dependency& d) {
  v("job", d.job)("condition", d.condition);
}
template <typename V>
void Fields(V& v, ArrayRange& a) {
  v("first", a.first)("last", a.last)("at_once", a.at_once);
}
template <typename V>
void Fields(V& v, Job& j) {
  v("name", j.name)("queue", j.queue)("kind", j.kind)("priority", j.priority)(
      "preemptible", j.preemptible)("groups", j.groups)("roles", j.roles)("nodes", j.nodes)(
      "same_device", j.same_device)("framework", j.framework)("command", j.command)(
      "workdir", j.workdir)("image", j.image)("template", j.job_template)("env", j.env)(
      "labels", j.labels)("checkpoint", j.checkpoint)("limits", j.limits)("after", j.after)(
      "array", j.array)("preemption_delay_ms", j.preemption_delay_ms)(
      "stale_grace_ms", j.stale_grace_ms)("terminal", j.terminal);
}
// People see a job as its file.
inline DocNode ToNode(const Job& job) { return JobToNode(job); }

template <typename V>
void Fields(V& v, Gpu& g) {
  v("type", g.type)("memory_bytes", g.memory_bytes)("numa", g.numa)("pcie_switch", g.pcie_switch)(
      "nvlink_island", g.nvlink_island);
}
template <typename V>
void Fields(V& v, Nic& n) {
  v("name", n.name)("numa", n.numa);
}
template <typename V>
void Fields(V& v, Node& n) {
  v("name", n.name)("pool", n.pool)("gpus", n.gpus)("sockets", n.sockets)("nics", n.nics)(
      "cpu_milli", n.cpu_milli)("memory_bytes", n.memory_bytes)("other", n.other)(
      "max_workers", n.max_workers)("labels", n.labels)("cordoned", n.cordoned)("draining",
                                                                                n.draining);
}
template <typename V>
void Fields(V& v, Topology& t) {
  v("name", t.name)("levels", t.levels);
}
template <typename V>
void Fields(V& v, Confinement& c) {
  v("gpu_types", c.gpu_types)("nodes", c.nodes);
}
template <typename V>
void Fields(V& v, KindRule& k) {
  v("confinement", k.confinement)("idle_ms", k.idle_ms);
}
template <typename V>
void Fields(V& v, Queue& q) {
  v("name", q.name)("parent", q.parent)("priority", q.priority)("created_order", q.created_order)(
      "quota", q.quota)("limit", q.limit)("weight", q.weight)(
      "general_weight_milli", q.general_weight_milli)("reclaim_min_runtime_ms",
                                                      q.reclaim_min_runtime_ms)(
      "preempt_min_runtime_ms", q.preempt_min_runtime_ms)("confinement", q.confinement)(
      "kinds", q.kinds)("members", q.members);
}

}  // namespace muster::model

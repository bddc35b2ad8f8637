// Fields of the records: how snapshots and history pack them (see model/pack.h).
//
// Nothing is taken out or reordered: snapshots of older versions are read with these functions.
#pragma once

#include <utility>
#include <vector>

#include "model/event_fields.h"
#include "state/records.h"
#include "state/request_keys.h"

namespace muster::state {

template <typename V>
void Fields(V& v, WorkerRecord& w) {
  v("phase", w.phase)("why", w.why)("launch", w.launch)("node", w.node)("devices", w.devices)(
      "placed_ms", w.placed_ms)("started_ms", w.started_ms)("leaving_ms", w.leaving_ms)(
      "pid", w.pid)("limits", w.limits)("exit", w.exit);
}
template <typename V>
void Fields(V& v, Preemption& p) {
  v("at_ms", p.at_ms)("why", p.why)("rule", p.rule)("cause", p.cause)("lost_gpu_ms", p.lost_gpu_ms)(
      "workers", p.workers);
}
template <typename V>
void Fields(V& v, SizeChange& s) {
  v("at_ms", s.at_ms)("from", s.from)("to", s.to)("why", s.why)("rule", s.rule)("cause", s.cause)(
      "pause_ms", s.pause_ms);
}
template <typename V>
void Fields(V& v, Ending& e) {
  v("end", e.end)("why", e.why)("at_ms", e.at_ms)("worker", e.worker)("exit", e.exit);
}
template <typename V>
void Fields(V& v, SpeedRecord& s) {
  v("told", s.told)("latest", s.latest);
}
template <typename V>
void Fields(V& v, JobRecord& j) {
  v("id", j.id)("spec", j.spec)("user", j.user)("uid", j.uid)("gid", j.gid)(
      "submitted_ms", j.submitted_ms)("array", j.array)("array_index", j.array_index)(
      "follows", j.follows)("held", j.held)("suspended", j.suspended)("stopping", j.stopping)(
      "stopped_by", j.stopped_by)("restarts", j.restarts)("failures", j.failures)(
      "not_before_ms", j.not_before_ms)("started_ms", j.started_ms)(
      "running_since_ms", j.running_since_ms)("ran_ms", j.ran_ms)("checkpoint_ms", j.checkpoint_ms)(
      "checkpoint_step", j.checkpoint_step)("generation", j.generation)("workers", j.workers)(
      "preemptions", j.preemptions)("preempted", j.preempted)("ending", j.ending)(
      "paused", j.paused)("forming", j.forming)("next_spec", j.next_spec)("revision", j.revision)(
      "idle_until_ms", j.idle_until_ms)("speed", j.speed)("expected_ms", j.expected_ms)(
      "sizes", j.sizes)("resized_ms", j.resized_ms)("pause_ms", j.pause_ms)("gpu_ms", j.gpu_ms)(
      "gpus_since_ms", j.gpus_since_ms)("expected_from", j.expected_from);
}
template <typename V>
void Fields(V& v, ArrayRecord& a) {
  v("id", a.id)("spec", a.spec)("user", a.user)("submitted_ms", a.submitted_ms)("tasks", a.tasks)(
      "succeeded", a.succeeded)("failed", a.failed)("cancelled", a.cancelled)("revision",
                                                                              a.revision);
}
template <typename V>
void Fields(V& v, NodeRecord& n) {
  v("node", n.node)("up", n.up)("why", n.why)("joined_ms", n.joined_ms)("revision", n.revision);
}
template <typename V>
void Fields(V& v, QueueRecord& q) {
  v("created_ms", q.created_ms)("revision", q.revision);
}
template <typename V>
void Fields(V& v, UserRecord& u) {
  v("name", u.name)("role", u.role)("groups", u.groups)("set_ms", u.set_ms)(
      "created_ms", u.created_ms)("revision", u.revision);
}
template <typename V>
void Fields(V& v, TokenRecord& t) {
  v("id", t.id)("name", t.name)("user", t.user)("hash", t.hash)("created_ms", t.created_ms)(
      "expires_ms", t.expires_ms)("role", t.role)("by", t.by)("revision", t.revision);
}
template <typename V>
void Fields(V& v, PolicyRecord& p) {
  v("said", p.said)("applied_ms", p.applied_ms)("revision", p.revision);
}
template <typename V>
void Fields(V& v, ReservationRecord& r) {
  v("reservation", r.reservation)("by", r.by)("created_ms", r.created_ms)("revision", r.revision);
}
template <typename V>
void Fields(V& v, RequestRecord& r) {
  v("said", r.said)("job", r.job);
}
template <typename V>
void Fields(V& v, RequestKeys& keys) {
  constexpr bool kReads = requires { v.bad(); };
  std::vector<RequestRecord> list;
  if constexpr (!kReads) list = keys.List();
  v("list", list);
  if constexpr (kReads) {
    for (auto& record : list) keys.Add(std::move(record));
  }
}

}  // namespace muster::state

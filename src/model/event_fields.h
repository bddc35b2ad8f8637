// Fields of the events: how they are packed (see model/pack.h). Nothing is taken out or reordered.
//
// Apart from event.h, because only the codec and the state's snapshot need the visitors, and every
// reader of an event would pay for compiling them.
#pragma once

#include "model/event.h"
#include "model/pack_model.h"

namespace muster::model {

template <typename V>
void Fields(V& v, Follows& f) {
  v("job", f.job)("condition", f.condition);
}
template <typename V>
void Fields(V& v, ExitFacts& x) {
  v("exit_code", x.exit_code)("signal", x.signal)("oom", x.oom)("stopped", x.stopped)(
      "lost", x.lost)("failure", x.failure)("ended_ms", x.ended_ms)(
      "max_rss_bytes", x.max_rss_bytes)("cpu_ms", x.cpu_ms);
}
template <typename V>
void Fields(V& v, DaemonStarted& e) {
  v("version", e.version);
}
template <typename V>
void Fields(V& v, NodeJoined& e) {
  v("node", e.node);
}
template <typename V>
void Fields(V& v, NodeWent& e) {
  v("node", e.node)("up", e.up)("why", e.why);
}
template <typename V>
void Fields(V& v, NodeMarked& e) {
  v("node", e.node)("cordoned", e.cordoned)("draining", e.draining)("by", e.by);
}
template <typename V>
void Fields(V& v, QueuesApplied& e) {
  v("queues", e.queues)("by", e.by);
}
template <typename V>
void Fields(V& v, JobSubmitted& e) {
  v("job", e.job)("spec", e.spec)("user", e.user)("uid", e.uid)("gid", e.gid)("follows", e.follows)(
      "key", e.key)("expected_ms", e.expected_ms)("expected_from", e.expected_from);
}
template <typename V>
void Fields(V& v, JobHeld& e) {
  v("job", e.job)("on", e.on)("by", e.by);
}
template <typename V>
void Fields(V& v, JobChanged& e) {
  v("job", e.job)("spec", e.spec)("what", e.what)("by", e.by)("once_stopped", e.once_stopped);
}
template <typename V>
void Fields(V& v, JobStopping& e) {
  v("job", e.job)("why", e.why)("by", e.by);
}
template <typename V>
void Fields(V& v, JobResumed& e) {
  v("job", e.job)("by", e.by);
}
template <typename V>
void Fields(V& v, JobRequeued& e) {
  v("job", e.job)("why", e.why)("counts", e.counts)("not_before_ms", e.not_before_ms);
}
template <typename V>
void Fields(V& v, JobEnded& e) {
  v("job", e.job)("end", e.end)("why", e.why)("worker", e.worker)("exit", e.exit);
}
template <typename V>
void Fields(V& v, CycleRan& e) {
  v("complete", e.complete)("steps", e.steps)("now_ms", e.now_ms);
}
template <typename V>
void Fields(V& v, WorkerPlaced& e) {
  v("job", e.job)("worker", e.worker)("launch", e.launch)("node", e.node)("devices", e.devices)(
      "action", e.action)("again", e.again);
}
template <typename V>
void Fields(V& v, WorkerLeaving& e) {
  v("job", e.job)("worker", e.worker)("why", e.why)("rule", e.rule)("cause", e.cause)(
      "lost_gpu_ms", e.lost_gpu_ms);
}
template <typename V>
void Fields(V& v, WorkerStarted& e) {
  v("job", e.job)("worker", e.worker)("launch", e.launch)("pid", e.pid)("at_ms", e.at_ms)("limits",
                                                                                          e.limits);
}
template <typename V>
void Fields(V& v, WorkerEnded& e) {
  v("job", e.job)("worker", e.worker)("launch", e.launch)("exit", e.exit);
}
template <typename V>
void Fields(V& v, Speed& s) {
  v("nodes", s.nodes)("gpus", s.gpus)("samples", s.samples)("compute_us", s.compute_us)(
      "step_us", s.step_us)("noise_milli", s.noise_milli)("first_batch", s.first_batch)(
      "most_batch", s.most_batch)("least_samples", s.least_samples)("most_samples", s.most_samples)(
      "gpu_type", s.gpu_type);
}
template <typename V>
void Fields(V& v, SpeedReported& e) {
  v("job", e.job)("speed", e.speed);
}
template <typename V>
void Fields(V& v, JobResized& e) {
  v("job", e.job)("at_ms", e.at_ms)("workers", e.workers)("pause_ms", e.pause_ms)("step", e.step);
}
template <typename V>
void Fields(V& v, CheckpointTaken& e) {
  v("job", e.job)("at_ms", e.at_ms)("step", e.step);
}
template <typename V>
void Fields(V& v, UseNoted& e) {
  v("gpu_ms", e.gpu_ms);
}
template <typename V>
void Fields(V& v, NumbersSkipped& e) {
  v("next", e.next);
}
template <typename V>
void Fields(V& v, UserSet& e) {
  v("name", e.name)("role", e.role)("groups", e.groups)("by", e.by);
}
template <typename V>
void Fields(V& v, UserRemoved& e) {
  v("name", e.name)("by", e.by);
}
template <typename V>
void Fields(V& v, TokenMade& e) {
  v("id", e.id)("name", e.name)("user", e.user)("hash", e.hash)("expires_ms", e.expires_ms)(
      "role", e.role)("by", e.by);
}
template <typename V>
void Fields(V& v, TokenRevoked& e) {
  v("id", e.id)("by", e.by);
}
template <typename V>
void Fields(V& v, JobIdle& e) {
  v("job", e.job)("idle_ms", e.idle_ms)("released_at_ms", e.released_at_ms);
}
template <typename V>
void Fields(V& v, RequestAnswered& e) {
  v("user", e.user)("key", e.key)("digest", e.digest)("object", e.object)("status", e.status)(
      "answer", e.answer);
}
template <typename V>
void Fields(V& v, PolicyApplied& e) {
  v("id", e.id)("name", e.name)("about", e.about)("settings", e.settings)("by", e.by)(
      "undoes", e.undoes)("before", e.before);
}
template <typename V>
void Fields(V& v, ReservedPart& p) {
  v("node", p.node)("gpus", p.gpus);
}
template <typename V>
void Fields(V& v, Reservation& r) {
  v("name", r.name)("queue", r.queue)("from_ms", r.from_ms)("to_ms", r.to_ms)("parts", r.parts)(
      "about", r.about);
}
template <typename V>
void Fields(V& v, ReservationSet& e) {
  v("reservation", e.reservation)("by", e.by);
}
template <typename V>
void Fields(V& v, ReservationRemoved& e) {
  v("name", e.name)("queue", e.queue)("by", e.by)("why", e.why);
}

}  // namespace muster::model

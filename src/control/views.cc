#include "control/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/units.h"
#include "contract/records.h"
#include "model/job_codec.h"
#include "model/queue_codec.h"
#include "model/vocabulary.h"

namespace muster::control {

using model::BoolNode;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::StopWhy;
using model::TextNode;
using state::JobRecord;
using state::Phase;
using state::WorkerPhase;

namespace {

DocNode Milli(std::int64_t value) {
  return value == model::kUnlimited ? TextNode("unlimited") : model::PlainNode(FormatMilli(value));
}

DocNode Devices(std::uint64_t mask) {
  DocNode list = ListNode();
  for (; mask != 0; mask &= mask - 1) list.children.push_back(NumberNode(std::countr_zero(mask)));
  return list;
}

DocNode ExitView(const model::ExitFacts& exit) {
  DocNode node = MapNode();
  if (exit.lost) Put(node, "lost", BoolNode(true));
  if (!exit.failure.empty()) Put(node, "failure", TextNode(exit.failure));
  if (exit.signal != 0) {
    Put(node, "signal", NumberNode(exit.signal));
  } else if (!exit.lost && exit.failure.empty()) {
    Put(node, "exit_code", NumberNode(exit.exit_code));
  }
  if (exit.oom) Put(node, "out_of_memory", BoolNode(true));
  Put(node, "ended_ms", NumberNode(exit.ended_ms));
  if (exit.cpu_ms > 0) Put(node, "cpu_ms", NumberNode(exit.cpu_ms));
  if (exit.max_rss_bytes > 0) Put(node, "max_rss_bytes", NumberNode(exit.max_rss_bytes));
  return node;
}

std::int64_t GpuMilli(const JobRecord& job) {
  std::int64_t held = 0;
  const auto roles = WorkerRoles(*job.spec);
  for (std::size_t w = 0; w < job.workers.size() && w < roles.size(); ++w) {
    if (!job.workers[w].Holds()) continue;
    const auto& gpu = job.spec->roles[static_cast<std::size_t>(roles[w])].request.gpu;
    const auto each = gpu.kind == model::GpuKind::kShare ? gpu.share_milli : kMilli;
    held += std::popcount(job.workers[w].devices) * each;
  }
  return held;
}

bool OnMarked(Controller& control, const JobRecord& job, const char* label) {
  return std::any_of(job.workers.begin(), job.workers.end(), [&](const auto& worker) {
    const auto node = control.state().nodes().find(worker.node);
    return node != control.state().nodes().end() && node->second.node.labels.contains(label);
  });
}

std::string JobName(const state::State& state, JobNumber id) {
  const auto* job = state.Find(id);
  const auto* array = state.FindArray(id);
  return "job " + std::to_string(id) +
         (job != nullptr     ? " (" + job->name() + ")"
          : array != nullptr ? " (" + array->spec->name + ")"
                             : "");
}

// How it ended, in a sentence.
std::string EndText(const JobRecord& job) {
  const auto& ending = *job.ending;
  const auto& exit = ending.exit;
  const std::string worker = "worker " + std::to_string(ending.worker);
  switch (ending.why) {
    case StopWhy::kTimeLimit:
      return "it ran for longer than its time limit of " +
             FormatDurationMs(job.spec->limits.time_ms);
    case StopWhy::kIdleLimit:
      return "it did nothing for longer than its idle limit";
    case StopWhy::kCancelled:
      return "cancelled by " + job.stopped_by;
    case StopWhy::kDependency:
      return "a job that it was to follow ended otherwise than it asked";
    default:
      break;
  }
  if (!exit.failure.empty()) return worker + " could not be started: " + exit.failure;
  if (exit.lost) return worker + " was lost";
  if (exit.oom) return worker + " used more memory than it asked for and was killed";
  if (exit.signal != 0) return worker + " was ended by signal " + std::to_string(exit.signal);
  return worker + " exited with " + std::to_string(exit.exit_code);
}

DocNode ReportView(const contract::Report& report) {
  DocNode node = MapNode();
  Put(node, "at_ms", NumberNode(report.at_ms));
  Put(node, "ready", BoolNode(report.ready));
  if (!report.leaving.empty()) Put(node, "leaving", TextNode(report.leaving));
  if (report.step) Put(node, "step", NumberNode(*report.step));
  if (report.epoch) Put(node, "epoch", NumberNode(*report.epoch));
  if (report.samples) Put(node, "samples", NumberNode(*report.samples));
  DocNode numbers = MapNode();
  // As text where JSON has no number for it: a loss may be infinite.
  for (const auto& [name, value] : report.numbers) {
    Put(numbers, name,
        std::isfinite(value) ? model::PlainNode(fmt::format("{}", value))
                             : TextNode(fmt::format("{}", value)));
  }
  Put(node, "numbers", std::move(numbers));
  return node;
}

DocNode WorkerView(Controller& control, const JobRecord& job, std::uint32_t w,
                   const std::vector<int>& roles) {
  const auto& worker = job.workers[w];
  DocNode node = MapNode();
  Put(node, "worker", NumberNode(w));
  if (w < roles.size()) {
    Put(node, "role", TextNode(job.spec->roles[static_cast<std::size_t>(roles[w])].name));
  }
  Put(node, "phase", TextNode(Name(worker.phase)));
  if (worker.launch > 0) {
    Put(node, "launches", NumberNode(worker.launch));
    Put(node, "node", TextNode(worker.node));
    Put(node, "gpus", Devices(worker.devices));
  }
  if (worker.pid != 0) Put(node, "pid", NumberNode(worker.pid));
  if (worker.started_ms != 0) Put(node, "started_ms", NumberNode(worker.started_ms));
  if (!worker.limits.empty()) Put(node, "limits_kept_by", TextNode(worker.limits));
  if (worker.exit) Put(node, "exit", ExitView(*worker.exit));
  if (auto* pool = worker.Holds() ? control.PoolOf(worker.node) : nullptr) {
    const auto report = pool->ReportOf({job.id, w, worker.launch});
    if (report) Put(node, "report", ReportView(*report));
  }
  return node;
}

// Where nothing has a place yet, all nodes speak for the one that it will get.
void PutPoolMarks(Controller& control, DocNode& node) {
  for (const char* label : {"virtual", "simulated"}) {
    if (control.engine().AllMarked(label)) Put(node, label, BoolNode(true));
  }
}

// Why it does not run, in a few words and without a look at the nodes.
std::string NoteText(Controller& control, const JobRecord& job) {
  const auto now = control.NowMs();
  switch (sim::BarOf(job, now)) {
    case sim::Bar::kHeld:
      return "held by hand";
    case sim::Bar::kSuspended:
      return "suspended by hand";
    case sim::Bar::kFollows:
      return "follows " + JobName(control.state(), job.follows[0].job) +
             (job.follows.size() > 1 ? " and others" : "");
    case sim::Bar::kBackOff:
      return "tried again in " + FormatDurationMs((job.not_before_ms - now + 999) / 1000 * 1000);
    case sim::Bar::kStopping:
      return "";
    case sim::Bar::kNone:
    case sim::Bar::kArrayTurn:
      break;
  }
  const auto why = control.engine().ExplainGate(job.id, now);
  if (why) return engine::Brief(control.engine().cluster(), *why);
  return job.array != 0 ? "its array's turn has not come" : "its queue takes no jobs";
}

DocNode PreemptionView(const state::State& state, const state::Preemption& one) {
  DocNode node = MapNode();
  Put(node, "at_ms", NumberNode(one.at_ms));
  Put(node, "what", TextNode(Name(one.why)));
  Put(node, "rule", TextNode(model::Name(one.rule)));
  if (one.cause != 0) {
    Put(node, "for_job", NumberNode(static_cast<std::int64_t>(one.cause)));
    if (const auto* cause = state.Find(one.cause)) {
      Put(node, "for_name", TextNode(cause->name()));
      Put(node, "for_user", TextNode(cause->user));
    }
  }
  Put(node, "workers", NumberNode(one.workers));
  if (one.lost_gpu_ms >= 0) Put(node, "lost_gpu_ms", NumberNode(one.lost_gpu_ms));
  return node;
}

}  // namespace

DocNode JobView(Controller& control, const JobRecord& job, bool detail) {
  const auto& spec = *job.spec;
  DocNode node = MapNode();
  Put(node, "id", TextNode(std::to_string(job.id)));
  Put(node, "name", TextNode(job.name()));
  Put(node, "user", TextNode(job.user));
  Put(node, "queue", TextNode(spec.queue));
  Put(node, "kind", TextNode(NameOf(spec.kind)));
  Put(node, "priority", NumberNode(spec.priority));
  Put(node, "created_at_ms", NumberNode(job.submitted_ms));
  if (job.array != 0) {
    Put(node, "array", TextNode(std::to_string(job.array)));
    Put(node, "array_index", NumberNode(job.array_index));
  }
  DocNode status = MapNode();
  Put(status, "phase", TextNode(Name(PhaseOf(job))));
  std::int64_t wanted = 0, least = 0;
  for (const auto& role : spec.roles) wanted += role.count;
  for (const auto& group : spec.groups) least += group.parent < 0 ? group.minimum : 0;
  Put(status, "workers_running",
      NumberNode(static_cast<std::int64_t>(job.Count(WorkerPhase::kRunning))));
  Put(status, "workers_min", NumberNode(least));
  Put(status, "workers_max", NumberNode(wanted));
  Put(status, "gpus", Milli(GpuMilli(job)));
  if (job.started_ms != 0) Put(status, "started_at_ms", NumberNode(job.started_ms));
  const auto now = control.NowMs();
  Put(status, "ran_ms",
      NumberNode(job.ran_ms + (job.running_since_ms > 0 ? now - job.running_since_ms : 0)));
  Put(status, "restarts", NumberNode(job.restarts));
  if (job.stopping != StopWhy::kNone) Put(status, "stopping", TextNode(Name(job.stopping)));
  if (!job.preemptions.empty()) {
    Put(status, "preempted", NumberNode(job.preempted));
    Put(status, "preemption", PreemptionView(control.state(), job.preemptions.back()));
  }
  if (job.ending) {
    DocNode end = MapNode();
    Put(end, "phase", TextNode(Name(job.ending->end)));
    Put(end, "reason", TextNode(EndText(job)));
    Put(end, "at_ms", NumberNode(job.ending->at_ms));
    Put(end, "exit", ExitView(job.ending->exit));
    Put(status, "termination", std::move(end));
  }
  if (job.ending || job.Holds()) {
    if (OnMarked(control, job, "virtual")) Put(status, "virtual", BoolNode(true));
    if (OnMarked(control, job, "simulated")) Put(status, "simulated", BoolNode(true));
  } else {
    PutPoolMarks(control, status);
    if (auto note = NoteText(control, job); !note.empty()) Put(status, "note", TextNode(note));
  }
  if (detail) {
    const auto roles = WorkerRoles(spec);
    DocNode workers = ListNode(), preemptions = ListNode();
    for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
      workers.children.push_back(WorkerView(control, job, w, roles));
    }
    Put(status, "workers", std::move(workers));
    for (const auto& one : job.preemptions) {
      preemptions.children.push_back(PreemptionView(control.state(), one));
    }
    Put(status, "preemptions", std::move(preemptions));
    if (job.checkpoint_ms >= 0) Put(status, "checkpoint_at_ms", NumberNode(job.checkpoint_ms));
    Put(node, "spec", model::JobToNode(spec));
  }
  Put(node, "status", std::move(status));
  return node;
}

DocNode ArrayView(const state::State& state, const state::ArrayRecord& array) {
  DocNode node = MapNode();
  Put(node, "id", TextNode(std::to_string(array.id)));
  Put(node, "name", TextNode(array.spec->name));
  Put(node, "user", TextNode(array.user));
  Put(node, "queue", TextNode(array.spec->queue));
  Put(node, "created_at_ms", NumberNode(array.submitted_ms));
  DocNode status = MapNode();
  const auto active = state.ActiveTasks(array.id);
  const auto ended = array.succeeded + array.failed + array.cancelled;
  const bool bad = array.failed > 0 || array.cancelled > 0;
  Put(status, "phase",
      TextNode(!array.Ended() ? (active > 0 ? "running" : "waiting")
               : bad          ? (array.failed > 0 ? "failed" : "cancelled")
                              : "succeeded"));
  Put(status, "tasks", NumberNode(array.tasks));
  Put(status, "active", NumberNode(active));
  Put(status, "waiting", NumberNode(array.tasks - ended - active));
  Put(status, "succeeded", NumberNode(array.succeeded));
  Put(status, "failed", NumberNode(array.failed));
  Put(status, "cancelled", NumberNode(array.cancelled));
  Put(node, "status", std::move(status));
  return node;
}

namespace {

// What keeps it from the engine, or nothing.
std::string BarText(Controller& control, const JobRecord& job) {
  const auto now = control.NowMs();
  switch (sim::BarOf(job, now)) {
    case sim::Bar::kHeld:
      return "it is held; `muster release " + std::to_string(job.id) + "` lets it go";
    case sim::Bar::kSuspended:
      return "it is suspended; `muster resume " + std::to_string(job.id) + "` lets it go on";
    case sim::Bar::kFollows: {
      std::string list;
      for (const auto& f : job.follows) {
        list += (list.empty() ? "" : ", ") + JobName(control.state(), f.job) + ":" +
                std::string(NameOf(f.condition));
      }
      return "it follows " + list + ", which has not ended";
    }
    case sim::Bar::kBackOff:
      return "its last start failed; it is tried again in " +
             FormatDurationMs((job.not_before_ms - now + 999) / 1000 * 1000);
    case sim::Bar::kStopping:
      return "it is being stopped (" + std::string(Name(job.stopping)) + ")";
    case sim::Bar::kNone:
    case sim::Bar::kArrayTurn:
      break;
  }
  if (control.engine().Has(job.id)) return "";
  if (job.array != 0) {
    return "its array runs at most " + std::to_string(job.spec->array->at_once) +
           " tasks at once, and those before it have their turn";
  }
  return "its queue " + job.spec->queue + " takes no jobs";
}

void PutExplanation(Controller& control, const engine::Explanation& why, DocNode& node) {
  const auto& cluster = control.engine().cluster();
  Put(node, "gate", TextNode(model::Name(why.gate)));
  Put(node, "workers_needed", NumberNode(why.workers));
  Put(node, "fit_now", NumberNode(why.fit_now));
  Put(node, "fit_if_preemptible_work_left", NumberNode(why.fit_empty));
  Put(node, "fit_on_empty_cluster", NumberNode(why.fit_ever));
  if (!why.out_of_service.empty()) {
    DocNode away = ListNode();
    for (const auto id : why.out_of_service) {
      away.children.push_back(TextNode(cluster.nodes().spec(id).name));
    }
    Put(node, "needs_nodes_out_of_service", std::move(away));
  }
  DocNode nodes = MapNode();
  for (std::size_t f = 0; f < engine::kFilters; ++f) {
    if (why.nodes[f] > 0) {
      Put(nodes, Name(static_cast<engine::Filter>(f)), NumberNode(why.nodes[f]));
    }
  }
  Put(node, "nodes_by_filter", std::move(nodes));
  if (why.nearest.node != engine::kNone) {
    DocNode nearest = MapNode();
    Put(nearest, "node", TextNode(cluster.nodes().spec(why.nearest.node).name));
    Put(nearest, "missing", TextNode(Name(why.nearest.filter)));
    Put(nearest, "gpus_missing", NumberNode(why.nearest.gpus_missing));
    Put(node, "nearest_fit", std::move(nearest));
  }
  DocNode share = MapNode();
  Put(share, "quota", Milli(why.quota));
  Put(share, "held", Milli(why.queue_held));
  Put(share, "fair_share", Milli(why.share));
  Put(node, "share", std::move(share));
  Put(node, "jobs_ahead", NumberNode(why.jobs_ahead));
  DocNode holders = ListNode(), changes = ListNode();
  for (const auto& holder : why.holders) {
    DocNode one = MapNode();
    Put(one, "queue", TextNode(cluster.queues().spec(holder.queue).name));
    Put(one, "gpus", Milli(holder.gpu_milli));
    Put(one, "right", TextNode(Name(holder.right)));
    holders.children.push_back(std::move(one));
  }
  for (const auto& change : why.changes) changes.children.push_back(TextNode(Describe(change)));
  Put(node, "held_by", std::move(holders));
  Put(node, "would_start_it", std::move(changes));
}

// Why it has no more workers than it has, where it could have more.
std::string RunningText(Controller& control, const JobRecord& job, DocNode& node) {
  const auto has = job.Count(WorkerPhase::kRunning) + job.Count(WorkerPhase::kPlaced);
  std::int64_t wanted = 0;
  for (const auto& role : job.spec->roles) wanted += role.count;
  const auto done = job.Count(WorkerPhase::kSucceeded);
  if (static_cast<std::int64_t>(has + done) >= wanted) {
    return "it has what it asked for: " + std::to_string(has) + " workers have a place";
  }
  std::string text =
      "it runs with " + std::to_string(has) + " of up to " + std::to_string(wanted) + " workers";
  if (done > 0) return text + ", and grows no more because some have finished";
  const auto why = control.engine().Explain(job.id, control.NowMs());
  if (!why || why->workers == 0) return text;
  PutExplanation(control, *why, node);
  return text + "; for more, " + engine::Sentence(control.engine().cluster(), *why);
}

}  // namespace

DocNode WhyView(Controller& control, const JobRecord& job) {
  DocNode node = MapNode();
  const Phase phase = PhaseOf(job);
  Put(node, "id", TextNode(std::to_string(job.id)));
  Put(node, "name", TextNode(job.name()));
  Put(node, "phase", TextNode(Name(phase)));
  std::string sentence;
  if (job.ending) {
    sentence = "it has ended: " + EndText(job);
  } else if (phase == Phase::kRunning || phase == Phase::kStarting) {
    sentence = RunningText(control, job, node);
  } else {
    sentence = BarText(control, job);
    if (sentence.empty()) {
      const auto why = control.engine().Explain(job.id, control.NowMs());
      if (why) {
        sentence = engine::Sentence(control.engine().cluster(), *why);
        PutExplanation(control, *why, node);
      }
    }
  }
  Put(node, "sentence", TextNode(sentence));
  PutPoolMarks(control, node);
  DocNode history = ListNode();
  for (const auto& one : job.preemptions) {
    history.children.push_back(PreemptionView(control.state(), one));
  }
  Put(node, "preemptions", std::move(history));
  return node;
}

DocNode NodesView(Controller& control) {
  DocNode list = ListNode();
  const auto& cluster = control.engine().cluster();
  for (const auto& [name, record] : control.state().nodes()) {
    const auto& spec = record.node;
    DocNode node = MapNode();
    Put(node, "name", TextNode(name));
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
    const auto id = cluster.FindNode(name);
    std::int64_t used = 0;
    if (id != engine::kNone) {
      for (std::uint32_t i = 0; i < cluster.nodes().node(id).device_count; ++i) {
        used += cluster.nodes().device(id, i).occupants[0] > 0 ? 1 : 0;
      }
    }
    Put(node, "gpus_in_use", NumberNode(used));
    Put(node, "cpus", Milli(spec.cpu_milli));
    Put(node, "memory_bytes", NumberNode(spec.memory_bytes));
    Put(node, "labels", model::TextMapNode(spec.labels));
    if (spec.labels.contains("virtual")) Put(node, "virtual", BoolNode(true));
    if (spec.labels.contains("simulated")) Put(node, "simulated", BoolNode(true));
    list.children.push_back(std::move(node));
  }
  return list;
}

DocNode GpusView(Controller& control) {
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
      if (gpu.nvlink_island >= 0) Put(node, "nvlink_island", NumberNode(gpu.nvlink_island));
      DocNode jobs = ListNode();
      for (const auto* job : holders[{name, static_cast<int>(i)}]) {
        DocNode one = MapNode();
        Put(one, "id", TextNode(std::to_string(job->id)));
        Put(one, "name", TextNode(job->name()));
        Put(one, "user", TextNode(job->user));
        Put(one, "queue", TextNode(job->spec->queue));
        jobs.children.push_back(std::move(one));
      }
      Put(node, "jobs", std::move(jobs));
      if (record.node.labels.contains("virtual")) Put(node, "virtual", BoolNode(true));
      if (record.node.labels.contains("simulated")) Put(node, "simulated", BoolNode(true));
      list.children.push_back(std::move(node));
    }
  }
  return list;
}

DocNode QueuesView(Controller& control) {
  const auto& queues = control.engine().cluster().queues();
  std::map<std::string, std::int64_t> waiting, running;
  for (const auto& [id, job] : control.state().jobs()) {
    if (job.ending) continue;
    ++(job.Holds() ? running : waiting)[job.spec->queue];
  }
  DocNode list = ListNode();
  for (const auto& spec : control.state().queues()) {
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
    Put(node, "jobs_running", NumberNode(running[spec.name]));
    Put(node, "jobs_waiting", NumberNode(waiting[spec.name]));
    PutPoolMarks(control, node);
    list.children.push_back(std::move(node));
  }
  return list;
}

DocNode RecordView(const state::Record& record, const model::EventBody& body) {
  DocNode node = MapNode();
  Put(node, "revision", NumberNode(static_cast<std::int64_t>(record.revision)));
  Put(node, "at_ms", NumberNode(record.at_ms));
  Put(node, "kind", TextNode(model::KindOf(body)));
  Put(node, "facts", model::EventToNode(body));
  return node;
}

}  // namespace muster::control

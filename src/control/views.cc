#include "control/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "contract/records.h"
#include "control/idle.h"
#include "control/view_parts.h"
#include "model/job_codec.h"
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
using state::WorkerPhase;

namespace {

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
  if (exit.stopped) Put(node, "stopped", BoolNode(true));
  if (exit.cpu_ms > 0) Put(node, "cpu_ms", NumberNode(exit.cpu_ms));
  if (exit.max_rss_bytes > 0) Put(node, "max_rss_bytes", NumberNode(exit.max_rss_bytes));
  return node;
}

bool OnMarked(Controller& control, const JobRecord& job, const char* label) {
  return std::any_of(job.workers.begin(), job.workers.end(), [&](const auto& worker) {
    const auto node = control.state().nodes().find(worker.node);
    return node != control.state().nodes().end() && node->second.node.labels.contains(label);
  });
}

DocNode ReportView(const contract::Report& report) {
  DocNode node = MapNode();
  Put(node, "at", TimeNode(report.at_ms));
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
                   const std::vector<int>& roles, bool enters) {
  const auto& worker = job.workers[w];
  DocNode node = MapNode();
  Put(node, "id", TextNode(fmt::format("{}/{}", job.id, w)));
  Put(node, "job", TextNode(std::to_string(job.id)));
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
  if (worker.started_ms != 0) Put(node, "started_at", TimeNode(worker.started_ms));
  if (!worker.limits.empty()) Put(node, "limits_kept_by", TextNode(worker.limits));
  if (worker.exit) Put(node, "exit", ExitView(*worker.exit));
  if (auto* pool = worker.Holds() ? control.PoolOf(worker.node) : nullptr) {
    const auto report = pool->ReportOf({job.id, w, worker.launch});
    if (report && report->at_ms > 0) Put(node, "report", ReportView(*report));
    const auto notebook = enters ? pool->NotebookOf({job.id, w, worker.launch}) : std::nullopt;
    if (notebook) {
      DocNode one = MapNode();
      Put(one, "port", NumberNode(notebook->port));
      Put(one, "token", TextNode(notebook->token));
      Put(node, "notebook", std::move(one));
    }
  }
  return node;
}

// Why it does not run, in a few words and without a look at the nodes.
std::string NoteText(Controller& control, const Access& access, const JobRecord& job) {
  const auto now = control.NowMs();
  switch (sim::BarOf(job, now)) {
    case sim::Bar::kHeld:
      return "held by hand";
    case sim::Bar::kSuspended:
      return "suspended by hand";
    case sim::Bar::kFollows:
      return "follows " + JobName(control.state(), access, job.follows[0].job) +
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

// The facts behind the phase, for programs that watch for one of them.
DocNode ConditionsView(const JobRecord& job) {
  DocNode list = ListNode();
  const auto add = [&list](const char* type, bool status, std::int64_t since_ms) {
    DocNode one = MapNode();
    Put(one, "type", TextNode(type));
    Put(one, "status", BoolNode(status));
    if (since_ms > 0) Put(one, "since", TimeNode(since_ms));
    list.children.push_back(std::move(one));
  };
  add("Held", job.held, 0);
  add("Suspended", job.suspended, 0);
  add("Released", job.follows.empty(), 0);
  add("Placed", job.Holds(), job.running_since_ms);
  add("Running", job.Count(WorkerPhase::kRunning) > 0, job.started_ms);
  add("Preempted", job.paused, job.preemptions.empty() ? 0 : job.preemptions.back().at_ms);
  add("Ended", job.ending.has_value(), job.ending ? job.ending->at_ms : 0);
  return list;
}

void PutIdle(const JobRecord& job, std::int64_t now_ms, DocNode& status) {
  if (job.ending || job.idle_until_ms == 0) return;
  Put(status, "idle_until", TimeNode(job.idle_until_ms));
  Put(status, "reasons", model::TextListNode({IdleText(job, now_ms)}));
}

void PutSizes(Controller& control, const Access& access, const JobRecord& job, DocNode& status) {
  if (job.sizes.empty()) return;
  auto& sizes = Put(status, "sizes", ListNode());
  for (const auto& one : job.sizes) {
    sizes.children.push_back(SizeView(control.state(), access, one));
  }
}

void PutDetail(Controller& control, const Access& access, const JobRecord& job, DocNode& status) {
  DocNode preemptions = ListNode();
  Put(status, "workers", WorkersView(control, access, job));
  for (const auto& one : job.preemptions) {
    preemptions.children.push_back(PreemptionView(control.state(), access, one));
  }
  Put(status, "preemptions", std::move(preemptions));
  PutSizes(control, access, job, status);
  Put(status, "conditions", ConditionsView(job));
  if (const auto error = control.outlook().RuntimeError(job)) {
    Put(status, "expected_off_by", Milli(error->factor_milli));
    Put(status, "expected_guesses", NumberNode(error->guesses));
  }
  if (job.checkpoint_ms >= 0) Put(status, "checkpoint_at", TimeNode(job.checkpoint_ms));
}

}  // namespace

DocNode JobView(Controller& control, const Access& access, const JobRecord& job, bool detail) {
  const auto& spec = *job.spec;
  DocNode node = MapNode();
  Put(node, "id", TextNode(std::to_string(job.id)));
  Put(node, "name", TextNode(job.name()));
  Put(node, "user", TextNode(job.user));
  Put(node, "queue", TextNode(spec.queue));
  Put(node, "kind", TextNode(NameOf(spec.kind)));
  Put(node, "priority", NumberNode(spec.priority));
  Put(node, "created_at", TimeNode(job.submitted_ms));
  Put(node, "revision", NumberNode(static_cast<std::int64_t>(job.revision)));
  if (!spec.labels.empty()) Put(node, "labels", model::TextMapNode(spec.labels));
  if (job.array != 0) {
    Put(node, "array", TextNode(std::to_string(job.array)));
    Put(node, "array_index", NumberNode(job.array_index));
  }
  DocNode status = MapNode();
  Put(status, "phase", TextNode(Name(PhaseOf(job))));
  Put(status, "workers_running",
      NumberNode(static_cast<std::int64_t>(job.Count(WorkerPhase::kRunning))));
  Put(status, "workers_min", NumberNode(LeastWorkers(spec)));
  Put(status, "workers_max", NumberNode(MostWorkers(spec)));
  Put(status, "gpus", Milli(HeldGpuMilli(job)));
  Put(status, "gpus_asked", Milli(model::AskedGpuMilli(spec)));
  if (job.started_ms != 0) Put(status, "started_at", TimeNode(job.started_ms));
  const auto now = control.NowMs();
  Put(status, "ran_ms",
      NumberNode(job.ran_ms + (job.running_since_ms > 0 ? now - job.running_since_ms : 0)));
  if (job.expected_ms > 0) Put(status, "expected_ms", NumberNode(job.expected_ms));
  Put(status, "restarts", NumberNode(job.restarts));
  if (job.stopping != StopWhy::kNone) Put(status, "stopping", TextNode(Name(job.stopping)));
  if (!job.preemptions.empty()) {
    Put(status, "preempted", NumberNode(job.preempted));
    Put(status, "preemption", PreemptionView(control.state(), access, job.preemptions.back()));
  }
  if (job.ending) {
    DocNode end = MapNode();
    Put(end, "phase", TextNode(Name(job.ending->end)));
    Put(end, "reason", TextNode(EndText(job)));
    Put(end, "at", TimeNode(job.ending->at_ms));
    Put(end, "exit", ExitView(job.ending->exit));
    Put(status, "termination", std::move(end));
  }
  if (job.ending || job.Holds()) {
    if (OnMarked(control, job, "virtual")) Put(status, "virtual", BoolNode(true));
    if (OnMarked(control, job, "simulated")) Put(status, "simulated", BoolNode(true));
    PutIdle(job, now, status);
  } else {
    PutPoolMarks(control, status);
    if (auto note = NoteText(control, access, job); !note.empty()) {
      Put(status, "reasons", model::TextListNode({note}));
    }
  }
  if (detail) {
    PutDetail(control, access, job, status);
    auto& file = Put(node, "spec", model::JobToNode(spec));
    if (!access.Acts(job.user, spec.queue)) MaskEnv(file);
  }
  Put(node, "status", std::move(status));
  return node;
}

DocNode WorkersView(Controller& control, const Access& access, const JobRecord& job) {
  const bool enters = access.MayEnter(job).has_value();
  DocNode list = ListNode();
  const auto roles = WorkerRoles(*job.spec);
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    list.children.push_back(WorkerView(control, job, w, roles, enters));
  }
  return list;
}

namespace {

DocNode TasksView(const state::State& state, const state::ArrayRecord& array) {
  DocNode node = MapNode();
  const auto active = state.ActiveTasks(array.id);
  const auto ended = array.succeeded + array.failed + array.cancelled;
  Put(node, "tasks", NumberNode(array.tasks));
  Put(node, "active", NumberNode(active));
  Put(node, "waiting", NumberNode(array.tasks - ended - active));
  Put(node, "succeeded", NumberNode(array.succeeded));
  Put(node, "failed", NumberNode(array.failed));
  Put(node, "cancelled", NumberNode(array.cancelled));
  return node;
}

const char* PhaseOfArray(const state::State& state, const state::ArrayRecord& array) {
  if (!array.Ended()) return state.ActiveTasks(array.id) > 0 ? "running" : "waiting";
  return array.failed > 0 ? "failed" : array.cancelled > 0 ? "cancelled" : "succeeded";
}

}  // namespace

DocNode ArrayView(const state::State& state, const Access& access, const state::ArrayRecord& array,
                  bool detail) {
  const auto& spec = *array.spec;
  DocNode node = ObjectNode(std::to_string(array.id), spec.name), status = MapNode();
  Put(node, "user", TextNode(array.user));
  Put(node, "queue", TextNode(spec.queue));
  Put(node, "kind", TextNode(NameOf(spec.kind)));
  Put(node, "priority", NumberNode(spec.priority));
  PutAge(node, array.submitted_ms, array.revision);
  if (!spec.labels.empty()) Put(node, "labels", model::TextMapNode(spec.labels));
  if (detail) {
    auto& file = Put(node, "spec", model::JobToNode(spec));
    if (!access.Acts(array.user, spec.queue)) MaskEnv(file);
  }
  Put(status, "phase", TextNode(PhaseOfArray(state, array)));
  for (auto& count : TasksView(state, array).children) status.children.push_back(count);
  Put(node, "status", std::move(status));
  return node;
}

void PutArray(const state::State& state, const state::ArrayRecord& array, DocNode& node) {
  Put(node, "array", TextNode(std::to_string(array.id)));
  Put(node, "tasks", TasksView(state, array));
}

DocNode WhyView(const state::State& state, const state::ArrayRecord& array) {
  DocNode node = ObjectNode(std::to_string(array.id), array.spec->name);
  Put(node, "phase", TextNode(PhaseOfArray(state, array)));
  Put(node, "sentence",
      TextNode(fmt::format("all of its {} tasks have ended: {} succeeded, {} failed, {} cancelled",
                           array.tasks, array.succeeded, array.failed, array.cancelled)));
  PutArray(state, array, node);
  Put(node, "preemptions", ListNode());
  return node;
}

namespace {

// Ids are texts, as everywhere; 0 is none and is left out.
void TextIds(DocNode& facts) {
  for (auto& fact : facts.children) {
    if (fact.key == "job" || fact.key == "cause") fact.quoted = true;
    if (fact.key != "follows") continue;
    for (auto& one : fact.children) TextIds(one);
  }
  std::erase_if(facts.children,
                [](const auto& fact) { return fact.key == "cause" && fact.text == "0"; });
}

// Likewise of policies; before the first of them there is the default.
void TextPolicyIds(DocNode& facts) {
  for (auto& fact : facts.children) {
    if (fact.key == "id" || fact.key == "undoes" || fact.key == "before") fact.quoted = true;
    if (fact.key == "before" && fact.text == "0") fact.text = "default";
  }
  std::erase_if(facts.children, [](const auto& fact) {
    return (fact.key == "undoes" && fact.text == "0") ||
           (fact.key == "before" && fact.text == "-1");
  });
}

}  // namespace

DocNode RecordView(const state::Record& record, const model::EventBody& body) {
  DocNode node = MapNode();
  Put(node, "revision", NumberNode(static_cast<std::int64_t>(record.revision)));
  Put(node, "at", TimeNode(record.at_ms));
  Put(node, "kind", TextNode(model::KindOf(body)));
  auto& facts = Put(node, "facts", model::EventToNode(body));
  for (auto& fact : facts.children) {
    if (fact.key == "spec") MaskEnv(fact);
  }
  if (const auto* placed = std::get_if<model::WorkerPlaced>(&body)) {
    std::erase_if(facts.children, [](const auto& fact) { return fact.key == "devices"; });
    if (placed->devices != 0) Put(facts, "devices", Devices(placed->devices));
  }
  TextIds(facts);
  if (std::holds_alternative<model::PolicyApplied>(body)) TextPolicyIds(facts);
  return node;
}

std::optional<DocNode> DecisionView(const state::Record& record, const model::EventBody& body) {
  DocNode node = MapNode();
  Put(node, "revision", NumberNode(static_cast<std::int64_t>(record.revision)));
  Put(node, "at", TimeNode(record.at_ms));
  Put(node, "job", TextNode(std::to_string(record.job)));
  if (const auto* placed = std::get_if<model::WorkerPlaced>(&body); placed && !placed->again) {
    Put(node, "what", TextNode(placed->action == model::ActionKind::kGrow ? "grow" : "start"));
    Put(node, "worker", NumberNode(placed->worker));
    Put(node, "node", TextNode(placed->node));
    Put(node, "gpus", Devices(placed->devices));
    return node;
  }
  const auto* leaving = std::get_if<model::WorkerLeaving>(&body);
  if (leaving == nullptr) return std::nullopt;
  const char* what = leaving->why == StopWhy::kPaused   ? "pause"
                     : leaving->why == StopWhy::kShrunk ? "shrink"
                     : leaving->why == StopWhy::kMoved  ? "move"
                                                        : nullptr;
  if (what == nullptr) return std::nullopt;
  Put(node, "what", TextNode(what));
  Put(node, "worker", NumberNode(leaving->worker));
  Put(node, "rule", TextNode(model::Name(leaving->rule)));
  if (leaving->cause != 0) Put(node, "for_job", TextNode(std::to_string(leaving->cause)));
  return node;
}

std::optional<DocNode> CheckpointView(const state::Record& record, const model::EventBody& body) {
  const auto* taken = std::get_if<model::CheckpointTaken>(&body);
  if (taken == nullptr) return std::nullopt;
  DocNode node = MapNode();
  Put(node, "revision", NumberNode(static_cast<std::int64_t>(record.revision)));
  Put(node, "at", TimeNode(taken->at_ms));
  if (taken->step >= 0) Put(node, "step", NumberNode(taken->step));
  return node;
}

}  // namespace muster::control

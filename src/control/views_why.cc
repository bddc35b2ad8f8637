#include "control/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/units.h"
#include "control/idle.h"
#include "control/view_parts.h"
#include "engine/explain.h"
#include "model/vocabulary.h"

namespace muster::control {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;
using state::JobRecord;
using state::Phase;
using state::WorkerPhase;

namespace {

// What keeps it from the engine, or nothing.
std::string BarText(Controller& control, const Access& access, const JobRecord& job) {
  const auto now = control.NowMs();
  switch (sim::BarOf(job, now)) {
    case sim::Bar::kHeld:
      return "it is held; `muster release " + std::to_string(job.id) + "` lets it go";
    case sim::Bar::kSuspended:
      return "it is suspended; `muster resume " + std::to_string(job.id) + "` lets it go on";
    case sim::Bar::kFollows: {
      std::string list;
      for (const auto& f : job.follows) {
        const char* must = f.condition == model::AfterCondition::kOk    ? "succeed"
                           : f.condition == model::AfterCondition::kAny ? "end"
                                                                        : "fail";
        list += (list.empty() ? "" : ", and ") + JobName(control.state(), access, f.job) +
                ", which must " + must + " first";
      }
      return "it follows " + list;
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
    const auto at_once = job.spec->array->at_once;
    return "its array runs at most " + std::to_string(at_once) +
           (at_once == 1 ? " task" : " tasks") + " at once, and those before it have their turn";
  }
  return "its queue " + job.spec->queue + " takes no jobs";
}

void PutExplanation(Controller& control, const Access& access, const engine::Explanation& why,
                    DocNode& node) {
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
  if (why.gate == model::Gate::kReserved) {
    DocNode kept = MapNode();
    if (why.kept.job != engine::kNone) {
      const auto keeper = control.engine().NumberOf(why.kept.job);
      Put(kept, "for", TextNode(JobName(control.state(), access, keeper)));
    } else {
      Put(kept, "for", TextNode("reservation " + why.kept.booking));
      Put(kept, "to", TimeNode(why.kept.to_ms));
    }
    Put(kept, "from", TimeNode(why.kept.from_ms));
    Put(node, "kept", std::move(kept));
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
    const auto& queue = cluster.queues().spec(holder.queue).name;
    DocNode one = MapNode();
    Put(one, "queue", TextNode(access.On(queue) >= Role::kViewer ? queue : "another queue"));
    Put(one, "gpus", Milli(holder.gpu_milli));
    Put(one, "right", TextNode(Name(holder.right)));
    holders.children.push_back(std::move(one));
  }
  for (const auto& change : why.changes) {
    const bool closed =
        change.kind == engine::Change::Kind::kOtherQueue && access.On(change.name) < Role::kUser;
    if (!closed) changes.children.push_back(TextNode(Describe(change)));
  }
  Put(node, "held_by", std::move(holders));
  Put(node, "would_start_it", std::move(changes));
}

// Why it has the size that it has, where that was given to it by goodput. Empty: it was not, or it
// is on its way to another.
std::string SizeText(Controller& control, const JobRecord& job, std::int64_t has) {
  const auto& cluster = control.engine().cluster();
  const auto id = cluster.FindJob(std::to_string(job.id));
  if (id == engine::kNone || !job.speed || cluster.job(id).target != cluster.job(id).active ||
      static_cast<std::int64_t>(cluster.job(id).active) != has) {
    return "";
  }
  std::set<std::string> nodes;
  int gpus = 0, there = 0;  // there: on one of its nodes
  for (const auto& worker : job.workers) {
    if (!worker.Holds()) continue;
    nodes.insert(worker.node);
    gpus += std::popcount(worker.devices);
    const auto node = control.state().nodes().find(worker.node);
    if (node == control.state().nodes().end()) continue;
    there = std::max(there, static_cast<int>(node->second.node.gpus.size()));
  }
  const auto& speed = *cluster.job(id).speed;
  const auto type = control.state().GpuTypeOf(job);
  const auto spread = static_cast<int>(nodes.size());
  const double now = speed.GoodputOn(type, spread, gpus);
  const bool one_node = spread == 1 && 2 * gpus <= there;
  const double twice = speed.GoodputOn(type, one_node ? 1 : 2 * spread, 2 * gpus);
  if (gpus == 0 || !(now > 0)) return "";
  return fmt::format(
      "its size is given out by goodput: on {} {}{} it is {:.2f} times as fast as on one, on twice "
      "as many it would be {:.2f} times as fast as now",
      gpus, gpus == 1 ? "GPU" : "GPUs", type.empty() ? "" : " of type " + type,
      now / speed.GoodputOn(type, 1, 1), twice / now);
}

// Why it has no more workers than it has, where it could have more.
std::string RunningText(Controller& control, const Access& access, const JobRecord& job,
                        DocNode& node) {
  const auto has = job.Count(WorkerPhase::kRunning) + job.Count(WorkerPhase::kPlaced);
  std::int64_t wanted = 0;
  for (const auto& role : job.spec->roles) wanted += role.count;
  const auto done = job.Count(WorkerPhase::kSucceeded);
  if (static_cast<std::int64_t>(has + done) >= wanted) {
    return "it has what it asked for: " +
           (has == 1 ? std::string("1 worker has") : std::to_string(has) + " workers have") +
           " a place";
  }
  std::string text = "it runs with " + std::to_string(has) + " of up to " + std::to_string(wanted) +
                     (wanted == 1 ? " worker" : " workers");
  if (done > 0) return text + ", and grows no more because some have finished";
  const auto size = SizeText(control, job, static_cast<std::int64_t>(has));
  if (!size.empty()) return text + "; " + size;
  const auto why = control.engine().Explain(job.id, control.NowMs());
  if (!why || why->workers == 0) return text;
  PutExplanation(control, access, *why, node);
  return text + "; for more, " + engine::Sentence(control.engine().cluster(), *why);
}

// Workers that the scheduler has told to go: for whom, and what becomes of them. Empty: there are
// none.
std::string LeavingText(Controller& control, const Access& access, const JobRecord& job) {
  const auto leaving = job.Count(WorkerPhase::kLeaving);
  if (leaving == 0 || job.stopping != model::StopWhy::kNone || job.preemptions.empty()) return "";
  const auto& last = job.preemptions.back();
  std::string text = leaving == 1 ? "1 worker is" : std::to_string(leaving) + " workers are";
  text += " being stopped by rule " + std::string(model::Name(last.rule));
  if (last.cause != 0) {
    text += " to make room for " + JobName(control.state(), access, last.cause);
  }
  switch (last.why) {
    case model::StopWhy::kMoved:
      return text + ", and will start again on another node";
    case model::StopWhy::kShrunk:
      return text + ", and the job goes on with the others";
    default:
      return text + "; the job will then wait in queue " + job.spec->queue +
             " and start again by itself when there is room";
  }
}

// Who is on the way out to make room for it.
DocNode DisplacedFor(Controller& control, const Access& access, model::JobNumber id) {
  DocNode out = ListNode();
  for (const auto& [number, other] : control.state().jobs()) {
    const auto leaving = static_cast<std::int64_t>(other.Count(WorkerPhase::kLeaving));
    if (leaving == 0 || other.preemptions.empty()) continue;
    const auto& last = other.preemptions.back();
    if (last.cause != id) continue;
    out.children.push_back(DisplacedView(access, other, last.why, last.rule, leaving));
  }
  return out;
}

}  // namespace

DocNode WhyView(Controller& control, const Access& access, const JobRecord& job) {
  DocNode node = MapNode();
  const Phase phase = PhaseOf(job);
  Put(node, "id", TextNode(std::to_string(job.id)));
  Put(node, "name", TextNode(job.name()));
  Put(node, "phase", TextNode(Name(phase)));
  std::string sentence;
  if (job.ending) {
    sentence = "it has ended: " + EndText(job);
  } else if (phase == Phase::kRunning || phase == Phase::kStarting) {
    sentence = RunningText(control, access, job, node);
    if (job.idle_until_ms > 0) sentence += "; " + IdleText(job, control.NowMs());
    if (auto leaving = LeavingText(control, access, job); !leaving.empty()) {
      sentence += "; " + leaving;
    }
  } else {
    sentence = phase == Phase::kStopping ? LeavingText(control, access, job) : "";
    if (sentence.empty()) sentence = BarText(control, access, job);
    if (sentence.empty()) {
      const auto why = control.engine().Explain(job.id, control.NowMs());
      if (why) {
        const auto& cluster = control.engine().cluster();
        const auto now = control.NowMs();
        sentence = engine::Sentence(cluster, *why);
        PutExplanation(control, access, *why, node);
        const auto start = control.outlook().StartOf(*job.spec, job.id, control.engine(), now);
        Put(node, "estimate", StartView(start, cluster, *why, now));
        if (why->gate == model::Gate::kPromised) {
          Put(node, "displaced", DisplacedFor(control, access, job.id));
        }
      }
    }
  }
  Put(node, "sentence", TextNode(sentence));
  PutPoolMarks(control, node);
  DocNode history = ListNode();
  for (const auto& one : job.preemptions) {
    history.children.push_back(PreemptionView(control.state(), access, one));
  }
  Put(node, "preemptions", std::move(history));
  return node;
}

}  // namespace muster::control

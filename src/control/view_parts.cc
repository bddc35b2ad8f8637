#include "control/view_parts.h"

#include <algorithm>
#include <bit>

#include "base/units.h"

namespace muster::control {

using model::BoolNode;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::StopWhy;
using model::TextNode;
using state::JobRecord;

namespace {

constexpr int kNoSuchProgram = 127;  // of a shell

}  // namespace

DocNode TimeNode(std::int64_t wall_ms) { return TextNode(FormatTimeMs(wall_ms)); }

DocNode Milli(std::int64_t value) {
  return value == model::kUnlimited ? TextNode("unlimited") : model::PlainNode(FormatMilli(value));
}

DocNode ObjectNode(const std::string& id, const std::string& name) {
  DocNode node = MapNode();
  Put(node, "id", TextNode(id));
  Put(node, "name", TextNode(name));
  return node;
}

void PutAge(DocNode& node, std::int64_t created_ms, std::uint64_t revision) {
  if (created_ms != 0) Put(node, "created_at", TimeNode(created_ms));
  Put(node, "revision", NumberNode(static_cast<std::int64_t>(revision)));
}

DocNode Devices(std::uint64_t mask) {
  DocNode list = ListNode();
  for (; mask != 0; mask &= mask - 1) list.children.push_back(NumberNode(std::countr_zero(mask)));
  return list;
}

std::int64_t HeldGpuMilli(const JobRecord& job) {
  const bool none = std::none_of(job.workers.begin(), job.workers.end(),
                                 [](const auto& worker) { return worker.Holds(); });
  if (none) return 0;  // most jobs of a long list
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

std::int64_t MostWorkers(const model::Job& spec) {
  std::int64_t most = 0;
  for (const auto& role : spec.roles) most += role.count;
  return most;
}

std::int64_t LeastWorkers(const model::Job& spec) {
  std::int64_t least = 0;
  for (const auto& group : spec.groups) least += group.parent < 0 ? group.minimum : 0;
  return least;
}

std::string JobName(const state::State& state, const Access& access, JobNumber id) {
  std::string name;
  if (const auto* job = state.Find(id)) {
    if (access.Sees(job->user, job->spec->queue)) name = job->name();
  } else if (const auto* array = state.FindArray(id)) {
    if (access.Sees(array->user, array->spec->queue)) name = array->spec->name;
  }
  return "job " + std::to_string(id) + (name.empty() ? "" : " (" + name + ")");
}

std::string EndText(const JobRecord& job) {
  const auto& ending = *job.ending;
  const auto& exit = ending.exit;
  const std::string worker = "worker " + std::to_string(ending.worker);
  switch (ending.why) {
    case StopWhy::kTimeLimit:
      return "it ran for longer than its time limit of " +
             FormatDurationMs(job.spec->limits.time_ms);
    case StopWhy::kIdleLimit:
      return "released because it was idle for longer than allowed: no processor or GPU use above "
             "the threshold, and no key typed";
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
  if (exit.exit_code == kNoSuchProgram && job.spec->job_template == "jupyter") {
    return "Jupyter is not installed where " + worker +
           " ran: install it on the node (Debian: jupyter-notebook), name its folder with "
           "`env: {PATH: ...}`, or give an `image` that has it";
  }
  if (exit.signal != 0) return worker + " was ended by signal " + std::to_string(exit.signal);
  return worker + " exited with " + std::to_string(exit.exit_code);
}

void PutPoolMarks(Controller& control, DocNode& node) {
  for (const char* label : {"virtual", "simulated"}) {
    if (control.engine().AllMarked(label)) Put(node, label, BoolNode(true));
  }
}

DocNode PreemptionView(const state::State& state, const Access& access,
                       const state::Preemption& one) {
  DocNode node = MapNode();
  Put(node, "at", TimeNode(one.at_ms));
  Put(node, "what", TextNode(Name(one.why)));
  Put(node, "rule", TextNode(model::Name(one.rule)));
  if (one.cause != 0) {
    Put(node, "for_job", TextNode(std::to_string(one.cause)));
    const auto* cause = state.Find(one.cause);
    if (cause != nullptr && access.Sees(cause->user, cause->spec->queue)) {
      Put(node, "for_name", TextNode(cause->name()));
      Put(node, "for_user", TextNode(cause->user));
    }
  }
  Put(node, "workers", NumberNode(one.workers));
  if (one.lost_gpu_ms >= 0) Put(node, "lost_gpu_ms", NumberNode(one.lost_gpu_ms));
  return node;
}

DocNode DisplacedView(const Access& access, const JobRecord& job, model::StopWhy what,
                      model::Rule rule, std::int64_t workers) {
  DocNode node = MapNode();
  const bool seen = access.Sees(job.user, job.spec->queue);
  Put(node, "job", TextNode(seen ? std::to_string(job.id) : "another's"));
  if (seen) {
    Put(node, "name", TextNode(job.name()));
    Put(node, "user", TextNode(job.user));
  }
  Put(node, "what", TextNode(Name(what)));
  Put(node, "workers", NumberNode(workers));
  Put(node, "rule", TextNode(model::Name(rule)));
  return node;
}

DocNode SizeView(const state::State& state, const Access& access, const state::SizeChange& one) {
  DocNode node = MapNode();
  const bool more = one.to > one.from;
  const std::string_view left = one.why == StopWhy::kNone ? "lost" : Name(one.why);
  Put(node, "at", TimeNode(one.at_ms));
  Put(node, "from", NumberNode(one.from));
  Put(node, "to", NumberNode(one.to));
  Put(node, "what", TextNode(!more ? left : one.from == 0 ? "started" : "grew"));
  if (one.why == StopWhy::kShrunk || one.why == StopWhy::kMoved || one.why == StopWhy::kPaused) {
    Put(node, "rule", TextNode(model::Name(one.rule)));
  }
  if (one.cause != 0) {
    Put(node, "for_job", TextNode(std::to_string(one.cause)));
    const auto* cause = state.Find(one.cause);
    if (cause != nullptr && access.Sees(cause->user, cause->spec->queue)) {
      Put(node, "for_name", TextNode(cause->name()));
      Put(node, "for_user", TextNode(cause->user));
      Put(node, "for_queue", TextNode(cause->spec->queue));
    }
  }
  if (one.pause_ms >= 0) Put(node, "pause_ms", NumberNode(one.pause_ms));
  return node;
}

void MaskEnv(DocNode& spec) {
  for (auto& child : spec.children) {
    if (child.key != "env") continue;
    for (auto& value : child.children) {
      auto hidden = TextNode("***");
      hidden.key = value.key;
      value = std::move(hidden);
    }
  }
}

}  // namespace muster::control

// CaseParser, second half: the lines of the story.
#include <filesystem>

#include "base/files.h"
#include "base/units.h"
#include "model/vocabulary.h"
#include "sim/case_parser.h"

namespace muster::sim {

using model::ActionKind;

void CaseParser::ParseRequest(LineReader& line, model::Job& job, model::Role& role) {
  auto& gpu = role.request.gpu;
  const auto milli = line.Milli("gpus");
  const auto bytes = line.Bytes("gpu_memory");
  const auto devices = static_cast<int>(line.Whole("devices").value_or(1));
  if (milli && bytes) line.Problem("`gpus` and `gpu_memory` exclude each other");
  if (bytes) {
    gpu = {model::GpuKind::kMemory, devices, 0, *bytes};
  } else if (milli.value_or(kMilli) % kMilli == 0) {
    const auto whole = static_cast<int>(milli.value_or(kMilli) / kMilli);
    if (whole > 0) gpu = {model::GpuKind::kWhole, whole, 0, 0};
  } else if (*milli < kMilli) {
    gpu = {model::GpuKind::kShare, devices, *milli, 0};
  } else {
    line.Problem("a worker has whole GPUs or a share below 1", "gpus=2, gpus=0.25");
  }
  role.request.cpu_milli = line.Milli("cpus").value_or(0);
  role.request.memory_bytes = line.Bytes("memory").value_or(0);
  role.request.other = line.Amounts("needs");
  role.gpu_types = line.List("types");
  job.nodes = line.Labels("nodes");
  job.same_device = line.Flag("same_device");
}

void CaseParser::ParseJob(LineReader& line) {
  CaseJob out;
  auto& job = out.spec;
  job.name = line.Name("a name");
  job.queue = line.Text("queue").value_or("");
  if (line.Choice("kind", {"train", "build"}) == 1U) {
    job.kind = model::JobKind::kBuild;
    job.priority = model::kFirstFixedPriority;
  }
  job.priority = line.Whole("priority").value_or(job.priority);
  job.preemptible = job.priority < model::kFirstFixedPriority;
  if (line.Flag("fixed")) job.preemptible = false;
  if (line.Flag("preemptible")) job.preemptible = true;
  const auto workers = line.Range("workers").value_or(CountRange{});
  model::Group group;
  group.minimum = workers.least;
  group.topology = {"", line.Text("require").value_or(""), line.Text("prefer").value_or("")};
  job.groups.push_back(group);
  model::Role role;
  role.name = "worker";
  role.count = workers.most;
  ParseRequest(line, job, role);
  job.roles.push_back(role);
  job.preemption_delay_ms = line.DurationMs("delay").value_or(0);
  job.checkpoint.restart_cost_ms = line.DurationMs("restart").value_or(0);
  job.limits.time_ms = line.DurationMs("takes").value_or(0);
  if (line.Flag("never_stale")) job.stale_grace_ms.reset();
  if (const auto grace = line.DurationMs("grace")) job.stale_grace_ms = *grace;
  out.age_ms = line.DurationMs("age").value_or(0);
  out.started_ms_ago = line.DurationMs("started").value_or(out.age_ms);
  out.checkpoint_ms_ago = line.DurationMs("checkpoint");
  out.running = line.Places("running");
  if (out.running.size() > static_cast<std::size_t>(role.count)) {
    line.Problem("more workers run than the job has", "workers=" + std::to_string(role.count));
  }
  Step(line, std::move(out));
}

void CaseParser::ParseCycle(LineReader& line, bool settle) {
  CaseCycle cycle;
  cycle.settle = settle;
  cycle.early = !settle && line.Flag("early");
  if (!settle) cycle.count = line.Whole("times").value_or(1);
  Step(line, cycle);
}

void CaseParser::ParseOrder(LineReader& line, CaseOrderKind kind) {
  for (const auto& name : line.Names("a name")) Step(line, CaseOrder{kind, name});
}

void CaseParser::ParseSpeed(LineReader& line) {
  CaseSpeed speed;
  speed.name = line.Name("a job");
  speed.type = line.Text("type").value_or("");
  speed.step_ms = line.DurationMs("step").value_or(0);
  speed.sync_ms = line.DurationMs("sync").value_or(0);
  speed.across_ms = line.DurationMs("across").value_or(speed.sync_ms);
  if (speed.step_ms == 0) line.Problem("a step takes time", "step=1s");
  Step(line, std::move(speed));
}

void CaseParser::ParseExpect(LineReader& line) {
  const auto name = line.Name("a job, or `why`, `queue`, `plan` or `total`");
  if (name == "plan" || name == "total") {
    ParseExpectPlan(line);
  } else if (name == "queue") {
    ParseExpectQueue(line);
  } else if (name == "why") {
    ParseExpectWhy(line);
  } else {
    ParseExpectJob(line);
  }
}

void CaseParser::ParseExpectJob(LineReader& line) {
  ExpectJob want;
  want.name = line.Name("a job");
  if (line.Flag("running")) want.state = CaseState::kRunning;
  if (line.Flag("full")) want.state = CaseState::kFull;
  if (line.Flag("pending")) want.state = CaseState::kPending;
  want.apart = line.Flag("apart");
  want.running = line.Whole("running");
  want.pending = line.Whole("pending");
  want.leaving = line.Whole("leaving");
  want.promised = line.Whole("promised");
  want.gpus_milli = line.Milli("held");
  want.nodes = line.Whole("nodes");
  want.islands = line.Whole("islands");
  want.on = line.List("on");
  want.types = line.List("types");
  want.places = line.Places("gpus");
  for (const auto& place : want.places) {
    if (!place.chosen) line.Problem("no GPUs of `" + place.node + "` are named", "gpus=a:0-3,b:0");
  }
  want.link = line.Choice("link", {"nvlink", "switch", "socket", "across"});
  want.rule = line.Text("rule").value_or("");
  want.cause = line.Text("for").value_or("");
  Step(line, std::move(want));
}

void CaseParser::ParseExpectQueue(LineReader& line) {
  ExpectQueue want;
  if (line.plain().size() != 2) {
    line.Problem("one queue is looked at", "expect queue NAME share=4 held=2");
  }
  want.name = line.plain().back();
  static_cast<void>(line.Flag(want.name));
  want.share = line.Amounts("share");
  want.held = line.Amounts("held");
  Step(line, std::move(want));
}

void CaseParser::ParseExpectWhy(LineReader& line) {
  ExpectWhy want;
  if (line.plain().size() != 2)
    line.Problem("one job is asked about", "expect why NAME gate=limit");
  want.name = line.plain().back();
  static_cast<void>(line.Flag(want.name));
  std::vector<std::string> gates;
  for (std::size_t i = 0; i < model::kGates; ++i) {
    gates.emplace_back(model::Name(static_cast<model::Gate>(i)));
  }
  if (const auto gate = line.Choice("gate", gates)) want.gate = gates[*gate];
  want.at = line.Text("at").value_or("");
  want.nearest = line.Text("nearest").value_or("");
  want.missing = line.Whole("missing");
  want.fit = line.Whole("fit");
  want.ahead = line.Whole("ahead");
  want.nodes = line.List("nodes");
  want.holders = line.List("holders");
  want.changes = line.List("change");
  Step(line, std::move(want));
}

void CaseParser::ParseExpectPlan(LineReader& line) {
  ExpectPlan want;
  want.total = line.Name("`plan`") == "total";
  want.empty = !want.total && line.Flag("empty");
  for (const auto& [key, kind] :
       {std::pair{"starts", ActionKind::kStart}, std::pair{"grows", ActionKind::kGrow},
        std::pair{"shrinks", ActionKind::kShrink}, std::pair{"moves", ActionKind::kMove},
        std::pair{"pauses", ActionKind::kPause}}) {
    if (const auto count = line.Whole(key)) want.counts[kind] = *count;
  }
  want.evictions = line.Whole("evictions");
  Step(line, std::move(want));
}

Result<Case> ReadCaseFile(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  auto out = ParseCase(path, *text);
  if (out) out->id = std::filesystem::path(path).stem().string();
  return out;
}

}  // namespace muster::sim

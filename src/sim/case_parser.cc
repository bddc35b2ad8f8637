#include "sim/case_parser.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/units.h"
#include "model/vocabulary.h"
#include "sim/case_rules.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kGi = 1LL << 30;
constexpr const char* kVerbs =
    "rule, policy, topology, node, queue, job, cycle, settle, advance, down, up, cordon, drain, "
    "uncordon, finish, hold, release, checkpoint, speed, expect";

constexpr std::array<std::pair<std::string_view, CaseOrderKind>, 9> kOrders = {{
    {"down", CaseOrderKind::kDown},
    {"up", CaseOrderKind::kUp},
    {"cordon", CaseOrderKind::kCordon},
    {"drain", CaseOrderKind::kDrain},
    {"uncordon", CaseOrderKind::kUncordon},
    {"finish", CaseOrderKind::kFinish},
    {"hold", CaseOrderKind::kHold},
    {"release", CaseOrderKind::kRelease},
    {"checkpoint", CaseOrderKind::kCheckpoint},
}};

std::string RuleNames() {
  std::string out;
  for (const auto& rule : CaseRules()) {
    out += (out.empty() ? "" : ", ") + std::string(rule.name);
  }
  return out;
}

}  // namespace

Result<Case> CaseParser::Parse(std::string_view text) {
  for (const auto& words : CutCase(text, problems_)) {
    if (!ParseSetup(words) && !ParseScript(words)) {
      problems_.Add(words.line, "no line begins with `" + words.verb + "`", kVerbs);
    }
  }
  Complete();
  if (problems_.lines.empty()) return std::move(out_);
  std::string all;
  for (const auto& problem : problems_.lines) {
    all += (all.empty() ? "" : "\n") + out_.id + ":" + problem;
  }
  return Fail(ErrorCode::kInvalid, all);
}

bool CaseParser::ParseSetup(const CaseWords& words) {
  LineReader line(words, problems_);
  if (words.verb == "rule") {
    ParseRule(line);
  } else if (words.verb == "policy") {
    ParsePolicy(line);
  } else if (words.verb == "topology") {
    ParseTopology(line);
  } else if (words.verb == "queue") {
    ParseQueue(line);
  } else {
    return false;
  }
  line.Finish();
  return true;
}

bool CaseParser::ParseScript(const CaseWords& words) {
  LineReader line(words, problems_);
  const auto order = std::find_if(kOrders.begin(), kOrders.end(),
                                  [&](const auto& known) { return known.first == words.verb; });
  if (words.verb == "node") {
    ParseNodes(line);
  } else if (words.verb == "job") {
    ParseJob(line);
  } else if (words.verb == "cycle" || words.verb == "settle") {
    ParseCycle(line, words.verb == "settle");
  } else if (words.verb == "advance") {
    const auto ms = ParseDurationMs(line.Name("a duration such as 90s"));
    if (!ms) line.Problem("no duration", "a duration such as 90s or 1h30m");
    Step(line, CaseAdvance{ms.value_or(0)});
  } else if (order != kOrders.end()) {
    ParseOrder(line, order->second);
  } else if (words.verb == "speed") {
    ParseSpeed(line);
  } else if (words.verb == "expect") {
    ParseExpect(line);
  } else {
    return false;
  }
  line.Finish();
  return true;
}

void CaseParser::ParseRule(LineReader& line) {
  const auto name = line.Name("the name of a rule");
  if (!out_.rule.empty()) line.Problem("a case proves one rule");
  if (FindCaseRule(name) == nullptr) line.Problem("no rule is called `" + name + "`", RuleNames());
  out_.rule = name;
}

void CaseParser::ParsePolicy(LineReader& line) {
  auto& policy = out_.setup.policy;
  if (const auto value = line.Whole("move_limit")) policy.move_limit = *value;
  if (const auto value = line.Whole("search_budget")) policy.search_budget = *value;
  if (const auto value = line.Whole("search_walk")) policy.search_walk = *value;
  if (const auto ms = line.DurationMs("decay_half_life")) policy.decay_half_life_ms = *ms;
  for (const auto& rule : CaseRules()) {
    if (rule.name == "move_limit") continue;
    const auto value = line.Choice(rule.name, {"on", "off"});
    if (value == 1U) rule.off(policy);
  }
}

void CaseParser::ParseTopology(LineReader& line) {
  model::Topology topology;
  topology.name = "cluster";
  topology.levels = line.Names("levels, the widest first");
  out_.setup.topologies.push_back(std::move(topology));
}

// gpus=8, or gpus=H100:4,T4:4 on one node.
void CaseParser::ParseGpus(LineReader& line, model::Node& node) {
  const auto gpus = line.List("gpus");
  const auto type = line.Text("type").value_or("");
  const auto memory = line.Bytes("gpu_memory").value_or(80 * kGi);
  const auto numa = line.Whole("numa").value_or(1);
  const auto island = line.Text("nvlink").value_or("none");
  const auto per_switch = line.Whole("pcie").value_or(0);
  for (const auto& item : gpus) {
    const auto colon = item.find(':');
    const auto count = ParseWhole(colon == std::string::npos ? item : item.substr(colon + 1));
    if (!count || *count + static_cast<std::int64_t>(node.gpus.size()) > 64) {
      line.Problem("`" + item + "` is no number of GPUs", "up to 64, or TYPE:COUNT,TYPE:COUNT");
      return;
    }
    model::Gpu gpu;
    gpu.type = colon == std::string::npos ? type : item.substr(0, colon);
    gpu.memory_bytes = memory;
    node.gpus.insert(node.gpus.end(), static_cast<std::size_t>(*count), gpu);
  }
  const auto total = static_cast<std::int64_t>(node.gpus.size());
  const auto island_size = island == "all" ? total : ParseWhole(island).value_or(0);
  if (island != "all" && island != "none" && island_size == 0) {
    line.Problem("`" + island + "` is no NVLink island", "all, none, or GPUs per island");
  }
  if (numa < 1 || numa > 64) line.Problem("a node has NUMA nodes", "1 to 64");
  node.sockets = static_cast<int>(std::clamp<std::int64_t>(numa, 1, 64));
  for (std::int64_t i = 0; i < total; ++i) {
    auto& gpu = node.gpus[static_cast<std::size_t>(i)];
    gpu.numa = static_cast<int>(i * node.sockets / total);
    if (island_size > 0) gpu.nvlink_island = static_cast<int>(i / island_size);
    if (per_switch > 0) gpu.pcie_switch = static_cast<int>(i / per_switch);
  }
}

void CaseParser::ParseNodes(LineReader& line) {
  model::Node node;
  const auto names = line.Names("one name or several");
  ParseGpus(line, node);
  for (const auto& socket : line.List("nics")) {
    const auto numa = ParseWhole(socket);
    if (!numa || *numa >= node.sockets) {
      line.Problem("`" + socket + "` is no NUMA node of it", "nics=0 or nics=0,1");
    }
    node.nics.push_back({"nic" + socket, static_cast<int>(numa.value_or(0))});
  }
  node.cpu_milli = line.Milli("cpus").value_or(128 * kMilli);
  node.memory_bytes = line.Bytes("memory").value_or(1024 * kGi);
  node.max_workers = static_cast<int>(line.Whole("workers").value_or(1000));
  node.labels = line.Labels("labels");
  node.other = line.Amounts("has");
  for (const auto& [name, count] : node.other) {
    if (!model::IsCountableName(name)) {
      line.Problem("`" + name + "` cannot be counted", "names in small letters, as in has=fpga:2");
    }
    auto& known = out_.setup.countables;
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  }
  for (const auto& name : names) {
    node.name = name;
    Step(line, CaseNode{node});
  }
}

void CaseParser::ParseQueue(LineReader& line) {
  model::Queue queue;
  queue.name = line.Name("a name, with its parent's before it: org/team");
  queue.parent = queue.name.substr(0, std::min(queue.name.rfind('/'), queue.name.size()));
  if (queue.parent == queue.name) queue.parent.clear();
  queue.created_order = static_cast<std::int64_t>(out_.setup.queues.size());
  queue.quota = line.Amounts("quota");
  queue.limit = line.Amounts("limit");
  queue.general_weight_milli = line.Milli("weight").value_or(kMilli);
  queue.priority = line.Whole("priority").value_or(queue.priority);
  queue.reclaim_min_runtime_ms = line.DurationMs("reclaim_min").value_or(0);
  queue.preempt_min_runtime_ms = line.DurationMs("preempt_min").value_or(0);
  queue.confinement = {line.List("types"), line.Labels("nodes")};
  const model::Confinement build{line.List("build.types"), line.Labels("build.nodes")};
  const model::Confinement train{line.List("train.types"), line.Labels("train.nodes")};
  if (build != model::Confinement{}) queue.kinds[model::JobKind::kBuild].confinement = build;
  if (train != model::Confinement{}) queue.kinds[model::JobKind::kTrain].confinement = train;
  if (const auto used = line.DurationMs("used")) out_.past_use[queue.name] = *used;
  out_.setup.queues.push_back(std::move(queue));
}

// A file without queues has one that is promised everything.
void CaseParser::Complete() {
  if (out_.rule.empty()) problems_.Add(1, "no line says which rule the case proves", "rule NAME");
  auto& queues = out_.setup.queues;
  if (queues.empty()) {
    model::Queue queue;
    queue.name = "main";
    queue.quota[std::string(model::kGpus)] = model::kUnlimited;
    queues.push_back(std::move(queue));
  }
  std::set<std::string> parents;
  for (const auto& queue : queues) parents.insert(queue.parent);
  std::vector<std::string> leaves;
  for (const auto& queue : queues) {
    if (!parents.contains(queue.name)) leaves.push_back(queue.name);
  }
  std::set<std::string> nodes, jobs;
  for (auto& step : out_.steps) {
    if (const auto* node = std::get_if<CaseNode>(&step.act)) {
      if (!nodes.insert(node->spec.name).second) {
        problems_.Add(step.line, "the node `" + node->spec.name + "` is there already");
      }
    }
    auto* job = std::get_if<CaseJob>(&step.act);
    if (job == nullptr) continue;
    jobs.insert(job->spec.name);
    std::string& queue = job->spec.queue;
    if (queue.empty() && leaves.size() == 1) queue = leaves[0];
    if (std::find(leaves.begin(), leaves.end(), queue) != leaves.end()) continue;
    std::string allowed;
    for (const auto& leaf : leaves) allowed += (allowed.empty() ? "" : ", ") + leaf;
    problems_.Add(step.line, "the job `" + job->spec.name + "` needs a queue for jobs", allowed);
  }
}

Result<Case> ParseCase(const std::string& id, std::string_view text) {
  return CaseParser(id).Parse(text);
}

}  // namespace muster::sim

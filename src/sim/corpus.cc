#include "sim/corpus.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/units.h"

namespace muster::sim {

using nlohmann::json;

namespace {

constexpr std::pair<TaskState, const char*> kStates[] = {{TaskState::kPending, "pending"},
                                                         {TaskState::kRunning, "running"},
                                                         {TaskState::kTerminating, "terminating"},
                                                         {TaskState::kStuck, "stuck"},
                                                         {TaskState::kFailed, "failed"},
                                                         {TaskState::kSucceeded, "succeeded"},
                                                         {TaskState::kGone, "gone"}};

TaskState ParseState(const json& value) {
  const auto text = value.get<std::string>();
  for (const auto& [state, name] : kStates) {
    if (text == name) return state;
  }
  throw std::runtime_error("unknown state " + text);
}

std::int64_t Scaled(const json& value, std::int64_t scale) {
  return std::llround(value.get<double>() * static_cast<double>(scale));
}

std::string TextOrEmpty(const json& value) {
  return value.is_null() ? std::string() : value.get<std::string>();
}

struct ResourceKey {
  const char* key;
  const char* name;
  std::int64_t scale;
};
constexpr ResourceKey kResources[] = {
    {"gpu", "gpus", kMilli}, {"cpu_milli", "cpus", 1}, {"memory_mib", "memory", 1}};

model::Node ReadNode(const json& in) {
  model::Node node;
  node.name = in.at("name");
  model::Gpu gpu;
  gpu.memory_bytes = in.at("gpu_memory_mib");
  node.gpus.assign(in.at("gpus").get<std::size_t>(), gpu);
  node.cpu_milli = Scaled(in.at("cpu_milli"), 1);
  node.memory_bytes = Scaled(in.at("memory_mib"), 1);
  node.max_workers = in.at("max_tasks");
  node.labels = in.at("labels").get<model::Labels>();
  return node;
}

model::Queue ReadQueue(const json& in) {
  model::Queue queue;
  queue.name = in.at("name");
  queue.parent = TextOrEmpty(in.at("parent"));
  queue.priority = in.at("priority");
  queue.created_order = in.at("created_order");
  queue.reclaim_min_runtime_ms = Scaled(in.at("reclaim_min_runtime_s"), 1000);
  queue.preempt_min_runtime_ms = Scaled(in.at("preempt_min_runtime_s"), 1000);
  for (const auto& [key, name, scale] : kResources) {
    const auto& quota = in.at("quota").at(key);
    const auto& limit = in.at("limit").at(key);
    queue.quota[name] = quota.is_null() ? model::kUnlimited : Scaled(quota, scale);
    if (!limit.is_null()) queue.limit[name] = Scaled(limit, scale);
    queue.weight[name] = Scaled(in.at("weight").at(key), kMilli);
  }
  return queue;
}

model::TopologyWish ReadWish(const json& in) {
  if (in.is_null()) return {};
  return {in.at("topology"), TextOrEmpty(in.at("required_level")),
          TextOrEmpty(in.at("preferred_level"))};
}

// Parents may stand behind their children in the file; the model wants them in front.
void ReadGroups(const json& in, model::Job& job) {
  model::Group root;
  root.topology = ReadWish(in.at("topology"));
  const json& groups = in.at("subgroups");
  root.minimum =
      groups.is_null() ? in.at("min_tasks").get<int>() : in.at("min_subgroups").get<int>();
  job.groups.push_back(root);
  if (groups.is_null()) return;
  std::vector<json> left(groups.begin(), groups.end());
  while (!left.empty()) {
    const auto ready = std::find_if(left.begin(), left.end(), [&](const json& group) {
      const auto parent = TextOrEmpty(group.at("parent"));
      return parent.empty() ||
             std::any_of(job.groups.begin(), job.groups.end(),
                         [&](const model::Group& known) { return known.name == parent; });
    });
    if (ready == left.end()) throw std::runtime_error("a subgroup has no parent");
    model::Group group;
    group.name = ready->at("name");
    const auto parent = TextOrEmpty(ready->at("parent"));
    group.parent = 0;
    for (std::size_t i = 1; i < job.groups.size(); ++i) {
      if (job.groups[i].name == parent) group.parent = static_cast<int>(i);
    }
    const json& tasks = ready->at("min_tasks");
    group.minimum = tasks.is_null() ? ready->at("min_subgroups").get<int>() : tasks.get<int>();
    group.topology = ReadWish(ready->at("topology"));
    job.groups.push_back(group);
    left.erase(ready);
  }
}

model::GpuRequest ReadGpu(const json& in) {
  model::GpuRequest gpu;
  if (in.contains("gpu")) {
    gpu.devices = in.at("gpu");
    gpu.kind = gpu.devices > 0 ? model::GpuKind::kWhole : model::GpuKind::kNone;
    return gpu;
  }
  gpu.devices = in.at("gpu_devices");
  if (in.contains("gpu_fraction")) {
    gpu.kind = model::GpuKind::kShare;
    gpu.share_milli = Scaled(in.at("gpu_fraction"), kMilli);
  } else {
    gpu.kind = model::GpuKind::kMemory;
    gpu.memory_bytes = Scaled(in.at("gpu_memory_mib"), 1);
  }
  return gpu;
}

Task ReadTask(const json& in, model::Job& job) {
  model::Role role;
  role.name = in.at("name");
  role.request.gpu = ReadGpu(in);
  role.request.cpu_milli = Scaled(in.at("cpu_milli"), 1);
  role.request.memory_bytes = Scaled(in.at("memory_mib"), 1);
  role.priority = in.at("task_priority");
  const json& allowed = in.at("allowed_nodes");
  if (!allowed.is_null()) role.node_names = allowed.get<std::vector<std::string>>();
  const auto group = TextOrEmpty(in.at("subgroup"));
  for (std::size_t i = 1; i < job.groups.size(); ++i) {
    if (job.groups[i].name == group) role.group = static_cast<int>(i);
  }
  job.roles.push_back(role);
  Task task;
  task.name = role.name;
  task.state = ParseState(in.at("state"));
  task.node = TextOrEmpty(in.at("node"));
  if (!in.at("gpu_indices").is_null()) {
    for (const int index : in.at("gpu_indices")) task.gpus |= 1ULL << index;
  }
  if (!in.at("started_s_ago").is_null()) task.started_s_ago = Scaled(in.at("started_s_ago"), 1);
  task.leaves_before_round = in.value("leaves_before_round", 0);
  task.returns_as_pending = in.value("returns_as_pending", false);
  return task;
}

ScenarioJob ReadJob(const json& in) {
  ScenarioJob job;
  job.spec.name = in.at("name");
  job.spec.queue = in.at("queue");
  job.spec.priority = in.at("priority");
  job.spec.preemptible = in.at("preemptible");
  job.spec.preemption_delay_ms = Scaled(in.at("preemption_delay_s"), 1000);
  const json& grace = in.at("stale_grace_s");
  job.spec.stale_grace_ms = grace.is_null() ? std::nullopt : std::optional(Scaled(grace, 1000));
  if (!in.at("stale_for_s").is_null()) job.stale_for_s = Scaled(in.at("stale_for_s"), 1);
  job.created_s_ago = Scaled(in.at("created_s_ago"), 1);
  ReadGroups(in, job.spec);
  for (const auto& task : in.at("tasks")) job.tasks.push_back(ReadTask(task, job.spec));
  return job;
}

void ReadExpectation(const json& in, Scenario& out) {
  out.rounds_to_converge = in.at("rounds_to_converge");
  out.stable_rounds = in.at("stable_rounds");
  out.no_evictions = in.at("max_evictions").is_number() && in.at("max_evictions") == 0;
  for (const auto& [name, job] : in.at("jobs").items()) {
    JobExpectation& expect = out.expect[name];
    for (const auto& [state, key] : kStates) expect.counts[state] = job.value(key, 0);
    if (!job.at("gpus").is_null()) expect.gpus_milli = Scaled(job.at("gpus"), kMilli);
    for (const auto& [task, value] : job.at("tasks").items()) {
      TaskExpectation& wanted = expect.tasks[task];
      if (!value.at("state").is_null()) wanted.state = ParseState(value.at("state"));
      if (value.contains("node")) wanted.node = TextOrEmpty(value.at("node"));
    }
  }
}

Scenario ReadScenario(const json& in) {
  Scenario out;
  out.id = in.at("id");
  out.title = in.at("title");
  out.deduced = in.at("basis") == "deduced";
  out.doubtful = in.contains("doubt");
  const json& settings = in.at("settings");
  out.victims_may_move = settings.at("reclaim_may_move_victims");
  if (!settings.at("move_limit").is_null()) out.move_limit = settings.at("move_limit");
  for (const auto& node : in.at("nodes")) out.nodes.push_back(ReadNode(node));
  for (const auto& topology : in.at("topologies")) {
    out.topologies.push_back({topology.at("name"), topology.at("levels")});
  }
  for (const auto& queue : in.at("queues")) out.queues.push_back(ReadQueue(queue));
  for (const auto& job : in.at("jobs")) out.jobs.push_back(ReadJob(job));
  ReadExpectation(in.at("expect"), out);
  return out;
}

ShareCase ReadCase(const json& in) {
  ShareCase out;
  out.id = in.at("id");
  for (const auto& part : in.at("parts")) {
    SharePart share;
    share.scale = part.at("resource") == "gpu" ? kMilli : 1;
    share.over_quota_only = part.at("phase") == "over_quota_only";
    share.total = Scaled(part.at("total"), share.scale);
    const auto bound = [&](const json& value) {
      return value.is_null() ? model::kUnlimited : Scaled(value, share.scale);
    };
    for (const auto& queue : part.at("queues")) {
      share.names.push_back(queue.at("name"));
      share.claims.push_back({.quota = bound(queue.at("quota")),
                              .limit = bound(queue.at("limit")),
                              .weight = Scaled(queue.at("weight"), kMilli),
                              .request = Scaled(queue.at("request"), share.scale),
                              .priority = queue.at("priority"),
                              .created_order = queue.at("created_order"),
                              .share = Scaled(queue.at("already_given"), share.scale)});
    }
    share.expect = part.at("expect").at("shares").get<std::map<std::string, double>>();
    out.parts.push_back(std::move(share));
  }
  return out;
}

}  // namespace

std::string Name(TaskState state) {
  for (const auto& [known, name] : kStates) {
    if (known == state) return name;
  }
  return "";
}

Result<CorpusFile> ReadCorpusFile(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  return ParseCorpus(path, *text);
}

Result<CorpusFile> ParseCorpus(const std::string& path, std::string_view text) {
  CorpusFile out;
  std::string at;
  try {
    const json document = json::parse(text);
    for (const auto& scenario : document.value("scenarios", json::array())) {
      at = scenario.value("id", "");
      out.scenarios.push_back(ReadScenario(scenario));
    }
    for (const auto& share : document.value("cases", json::array())) {
      at = share.value("id", "");
      out.cases.push_back(ReadCase(share));
    }
  } catch (const std::exception& error) {
    std::string what = error.what();
    if (what.starts_with('[')) what.erase(0, what.find("] ") + 2);  // the library's own numbering
    return Fail(ErrorCode::kInvalid, path + (at.empty() ? "" : ", " + at) + ": " + what,
                "the file does not follow the schema of the corpus");
  }
  return out;
}

Result<std::vector<std::string>> ListFiles(const std::vector<std::string>& paths,
                                           const std::vector<std::string>& extensions) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    for (const auto& extension : extensions) {
      std::vector<std::string> found;
      for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
        if (entry.path().extension() == extension) found.push_back(entry.path().string());
      }
      if (error) return tl::unexpected(PathError(path, error.value()));
      std::sort(found.begin(), found.end());
      files.insert(files.end(), found.begin(), found.end());
    }
  }
  return files;
}

}  // namespace muster::sim

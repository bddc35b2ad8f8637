#include "model/job_codec.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "model/fields.h"
#include "model/job_roles.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

void ReadDuration(const DocNode* node, std::int64_t& out, Problems& problems) {
  if (node == nullptr) return;
  if (const auto ms = ReadQuantity(*node, Quantity::kDuration, problems)) out = *ms;
}

void ReadKind(const DocNode* node, Job& job, Problems& problems) {
  if (node == nullptr) return;
  const auto index = ReadChoice(*node, kJobKindNames, problems);
  if (!index) return;
  job.kind = static_cast<JobKind>(*index);
  if (job.kind == JobKind::kTune || job.kind == JobKind::kServe) {
    problems.Error(node->mark, "`kind: " + node->text + "` is not available yet", "build or train");
  }
}

std::optional<std::int64_t> ReadPriority(const DocNode& node, Problems& problems) {
  const std::string rule = JoinChoices(kPriorityNames) + ", or a whole number from 0 to " +
                           std::to_string(kMostPriority);
  if (node.kind == DocKind::kScalar) {
    const bool is_number = ParseWhole(node.text).has_value();
    const auto priority = node.quoted && is_number ? std::nullopt : ParsePriority(node.text);
    if (priority) return priority;
  }
  auto message = "`priority`: " + DescribeNode(node) + " is no priority";
  const auto near = Nearest(node.text, kPriorityNames);
  if (!near.empty()) message += "; did you mean " + Quoted(near) + "?";
  problems.Error(node.mark, std::move(message), rule);
  return std::nullopt;
}

void ReadRank(MapReader& reader, Job& job, Problems& problems) {
  const bool build = job.kind == JobKind::kBuild;
  job.priority = build ? kFirstFixedPriority : 50;
  if (const auto* node = reader.Take("priority")) {
    job.priority = ReadPriority(*node, problems).value_or(job.priority);
  }
  job.preemptible = PreemptibleByDefault(job);
  const auto* node = reader.Take("preemptible");
  if (node == nullptr) return;
  job.preemptible = ReadBool(*node, problems).value_or(job.preemptible);
  if (build && job.preemptible) {
    problems.Error(node->mark, "a build job is never preemptible",
                   "`preemptible: false`, or `kind: train`");
  }
}

void ReadCommand(const DocNode* node, Job& job, Problems& problems) {
  if (node == nullptr) return;
  if (node->kind != DocKind::kSequence || node->children.empty()) {
    problems.Error(node->mark, "`command` must be a list of words, not " + DescribeNode(*node),
                   "[python3, train.py]; for a shell line: [sh, -c, \"...\"]");
    return;
  }
  for (const auto& item : node->children) {
    if (auto word = ReadText(item, problems)) job.command.push_back(std::move(*word));
  }
  if (!job.command.empty() && job.command[0].empty()) {
    problems.Error(node->children[0].mark, "the first word of `command` is empty",
                   "the program to run");
  }
}

void ReadCheckpoint(const DocNode& node, Checkpoint& out, Problems& problems) {
  MapReader reader(node, "a checkpoint", problems);
  if (const auto* dir = reader.Take("dir")) out.dir = ReadText(*dir, problems).value_or("");
  if (const auto* signal = reader.Take("signal")) {
    if (const auto index = ReadChoice(*signal, kSignalNames, problems)) {
      out.signal = kSignalNames[*index];
    }
  }
  ReadDuration(reader.Take("grace"), out.grace_ms, problems);
  ReadDuration(reader.Take("every"), out.every_ms, problems);
  ReadDuration(reader.Take("restart_cost"), out.restart_cost_ms, problems);
  reader.Finish();
}

void ReadLimits(const DocNode& node, Limits& out, Problems& problems) {
  MapReader reader(node, "limits", problems);
  ReadDuration(reader.Take("time"), out.time_ms, problems);
  ReadDuration(reader.Take("idle"), out.idle_ms, problems);
  if (const auto* retries = reader.Take("retries")) {
    out.retries = static_cast<int>(ReadInteger(*retries, {0, 1'000}, problems).value_or(0));
  }
  reader.Finish();
}

void ReadAfter(const DocNode& node, Job& job, Problems& problems) {
  constexpr std::string_view kRule = "a job's name, alone or with :ok, :any or :failed";
  if (node.kind != DocKind::kSequence) {
    problems.Error(node.mark, "`after` must be a list, not " + DescribeNode(node),
                   "[prepare-data:ok]");
    return;
  }
  std::set<std::string> seen;
  for (const auto& item : node.children) {
    const auto text = ReadText(item, problems);
    if (!text) continue;
    const auto colon = text->find(':');
    Dependency dependency{text->substr(0, colon), AfterCondition::kOk};
    if (!IsName(dependency.job)) {
      problems.Error(item.mark, "`after`: " + DescribeNode(item) + " names no job",
                     std::string(kRule));
      continue;
    }
    if (colon != std::string::npos) {
      const auto word = std::string_view(*text).substr(colon + 1);
      const auto found = std::find(kAfterConditionNames.begin(), kAfterConditionNames.end(), word);
      if (found == kAfterConditionNames.end()) {
        problems.Error(item.mark, "`after`: " + Quoted(word) + " is not an outcome",
                       JoinChoices(kAfterConditionNames));
        continue;
      }
      dependency.condition = static_cast<AfterCondition>(found - kAfterConditionNames.begin());
    }
    if (dependency.job == job.name) {
      problems.Error(item.mark, "a job cannot wait for itself", "the name of another job");
    } else if (!seen.insert(dependency.job).second) {
      problems.Error(item.mark, "`after` names " + Quoted(dependency.job) + " twice",
                     "each job once");
    } else {
      job.after.push_back(std::move(dependency));
    }
  }
}

void ReadArray(const DocNode& node, Job& job, Problems& problems) {
  constexpr std::string_view kRule = "FIRST-LAST or FIRST-LAST%AT_ONCE, such as 0-99%8";
  std::string wrong = " is not a range";
  if (node.kind == DocKind::kScalar) {
    const std::string_view text = node.text;
    const auto percent = text.find('%');
    const auto range = text.substr(0, percent);
    const auto dash = range.find('-');
    const auto first = ParseWhole(range.substr(0, dash));
    const auto last = dash == range.npos ? std::nullopt : ParseWhole(range.substr(dash + 1));
    const auto at_once = percent == text.npos ? 0 : ParseWhole(text.substr(percent + 1));
    if (first && last && at_once) {
      if (*first > *last) {
        wrong = " ends before it begins";
      } else if (*last - *first >= kMostArrayTasks) {
        wrong = " has more than " + std::to_string(kMostArrayTasks) + " tasks";
      } else if (percent != text.npos && *at_once < 1) {
        wrong = " lets no task run";
      } else {
        job.array = ArrayRange{*first, *last, *at_once};
        return;
      }
    }
  }
  problems.Error(node.mark, "`array`: " + DescribeNode(node) + wrong, std::string(kRule));
}

void ReadShare(const DocNode& node, Job& job, Problems& problems) {
  constexpr std::array<std::string_view, 2> kWords = {"never", "allow"};
  MapReader reader(node, "share", problems);
  if (const auto* same = reader.Take("same_device")) {
    job.same_device = ReadChoice(*same, kWords, problems).value_or(0) == 1;
  }
  reader.Finish();
}

void ReadTiming(MapReader& reader, Job& job, Problems& problems) {
  ReadDuration(reader.Take("preemption_delay"), job.preemption_delay_ms, problems);
  const auto* stale = reader.Take("stale_grace");
  if (stale == nullptr) return;
  if (stale->kind == DocKind::kScalar && stale->text == "never") {
    job.stale_grace_ms.reset();
  } else if (const auto ms = ReadQuantity(*stale, Quantity::kDuration, problems)) {
    job.stale_grace_ms = *ms;
  }
}

void ReadIdentity(MapReader& reader, Job& job, Problems& problems) {
  if (const auto* name = reader.Require("name", "`name: resnet-cifar`")) {
    job.name =
        ReadMatching(*name, IsJobName, "the name of a job", kJobNameRule, problems).value_or("");
  }
  if (const auto* queue = reader.Require("queue", "`queue: vision/detection`")) {
    job.queue = ReadMatching(*queue, IsQueuePath, "the path of a queue",
                             "names joined by `/`, such as vision/detection", problems)
                    .value_or("");
  }
  ReadKind(reader.Take("kind"), job, problems);
  ReadRank(reader, job, problems);
}

void ReadProgram(MapReader& reader, const DocNode& node, Job& job, Problems& problems) {
  const auto text = [&](std::string_view key, std::string& out) {
    const auto* value = reader.Take(key);
    if (value != nullptr) out = ReadText(*value, problems).value_or("");
    return value;
  };
  if (const auto* framework = reader.Take("framework")) {
    job.framework =
        static_cast<Framework>(ReadChoice(*framework, kFrameworkNames, problems).value_or(0));
  }
  const auto* command = reader.Take("command");
  ReadCommand(command, job, problems);
  text("workdir", job.workdir);
  const auto* image = text("image", job.image);
  if (const auto* terminal = reader.Take("terminal")) {
    job.terminal = ReadBool(*terminal, problems).value_or(false);
  }
  const auto* from_template = text("template", job.job_template);
  if (from_template != nullptr && job.kind != JobKind::kBuild) {
    problems.Error(from_template->key_mark, "`template` is for build work", "`kind: build`");
  }
  if (command == nullptr && image == nullptr && from_template == nullptr &&
      node.kind == DocKind::kMap) {
    problems.Missing(node.mark, "command", "the job has nothing to run",
                     "`command`, `image` or `template`");
  }
  if (const auto* env = reader.Take("env")) {
    job.env = ReadTextMap(*env, IsVariableName, "the name of a variable",
                          "letters, digits and `_`, not beginning with a digit", problems);
  }
}

void CheckSize(const DocNode& node, const std::vector<RoleDraft>& roles, const Job& job,
               Problems& problems) {
  std::int64_t workers = 0;
  for (const auto& draft : roles) {
    workers += draft.role.count;
    if (job.kind == JobKind::kBuild && draft.least != draft.role.count) {
      problems.Error(draft.count_mark, "a build job has a fixed size",
                     "one number of workers, or `kind: train`");
    }
  }
  if (workers > kMostWorkers) {
    problems.Error(node.mark, "the job has " + std::to_string(workers) + " workers",
                   "at most " + std::to_string(kMostWorkers));
  }
}

}  // namespace

Job JobFromNode(const DocNode& node, Problems& problems) {
  Job job;
  MapReader reader(node, "a job", problems);
  ReadIdentity(reader, job, problems);
  auto roles = ReadRoles(reader, node, problems);
  CheckSize(node, roles, job, problems);
  TopologyWish topology;
  if (const auto* wish = reader.Take("topology")) topology = ReadTopologyWish(*wish, problems);
  BuildGroups(reader.Take("groups"), std::move(roles), std::move(topology), job, problems);
  ReadProgram(reader, node, job, problems);
  if (const auto* labels = reader.Take("labels")) job.labels = ReadLabels(*labels, problems);
  if (const auto* nodes = reader.Take("nodes")) job.nodes = ReadLabels(*nodes, problems);
  if (const auto* share = reader.Take("share")) ReadShare(*share, job, problems);
  if (const auto* checkpoint = reader.Take("checkpoint")) {
    ReadCheckpoint(*checkpoint, job.checkpoint, problems);
  }
  if (const auto* limits = reader.Take("limits")) ReadLimits(*limits, job.limits, problems);
  if (const auto* after = reader.Take("after")) ReadAfter(*after, job, problems);
  if (const auto* array = reader.Take("array")) ReadArray(*array, job, problems);
  ReadTiming(reader, job, problems);
  reader.Finish();
  return job;
}

std::optional<std::int64_t> ParsePriority(std::string_view text) {
  const auto found = std::find(kPriorityNames.begin(), kPriorityNames.end(), text);
  if (found != kPriorityNames.end()) {
    return kPriorityValues[static_cast<std::size_t>(found - kPriorityNames.begin())];
  }
  const auto number = ParseWhole(text);
  return number && *number >= 0 && *number <= kMostPriority ? number : std::nullopt;
}

Result<Job> DecodeJob(std::string_view text) {
  auto decoded = DecodeSpec(text);
  if (!decoded.problems.HasErrors() && decoded.spec.jobs.size() != 1) {
    decoded.problems.Error(
        {}, "the file holds " + std::to_string(decoded.spec.jobs.size()) + " jobs", "one job");
  }
  if (decoded.problems.HasErrors()) return tl::unexpected(ToError(decoded.problems));
  return std::move(decoded.spec.jobs[0]);
}

std::string EncodeJob(const Job& job, TextFormat format) {
  return WriteDocument(JobToNode(job), format);
}

}  // namespace muster::model

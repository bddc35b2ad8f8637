#include "model/queue_codec.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/units.h"
#include "model/fields.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

constexpr std::string_view kUnlimitedWord = "unlimited";
constexpr std::string_view kGeneralWeight = "default";
constexpr std::int64_t kMostPriorityOfQueue = 1'000'000;
constexpr std::int64_t kMostWeightMilli = 1'000'000 * kMilli;
constexpr std::int64_t kDefaultPriority = 100;

Quantity UnitOf(std::string_view resource) {
  if (resource == kGpus || IsGpuTypeName(resource)) return Quantity::kGpus;
  if (resource == kCpus) return Quantity::kCores;
  return resource == kMemory ? Quantity::kBytes : Quantity::kPieces;
}

bool IsResource(std::string_view name) {
  return name == kGpus || name == kCpus || name == kMemory || IsGpuTypeName(name) ||
         IsCountableName(name);
}

struct QueueMarks {
  Mark name;
  Mark quota;
};

class QueueReader {
 public:
  explicit QueueReader(Problems& problems) : problems_(problems) {}

  void Read(const DocNode& node) {
    MapReader reader(node, "a queue", problems_);
    Queue queue;
    QueueMarks marks{node.mark, node.mark};
    if (const auto* name = reader.Require("name", "`name: vision`")) {
      marks.name = name->mark;
      queue.name = ReadMatching(*name, IsQueuePath, "the path of a queue",
                                "names joined by `/`, such as vision/detection", problems_)
                       .value_or("");
    }
    if (const auto* priority = reader.Take("priority")) {
      queue.priority =
          ReadInteger(*priority, {0, kMostPriorityOfQueue}, problems_).value_or(kDefaultPriority);
    }
    const auto* quota = reader.Take("quota");
    if (quota != nullptr) {
      queue.quota = ReadAmounts(*quota);
      marks.quota = quota->key_mark;
    }
    if (const auto* limit = reader.Take("limit")) {
      queue.limit = ReadAmounts(*limit);
      CheckQuotaBelowLimit(queue, *limit);
    }
    if (const auto* weight = reader.Take("weight")) ReadWeight(*weight, queue);
    ReadConfinement(reader, queue.confinement);
    if (const auto* kinds = reader.Take("kinds")) ReadKinds(*kinds, queue);
    if (const auto* members = reader.Take("members")) ReadMembers(*members, queue);
    ReadDuration(reader.Take("reclaim_min_runtime"), queue.reclaim_min_runtime_ms);
    ReadDuration(reader.Take("preempt_min_runtime"), queue.preempt_min_runtime_ms);
    reader.Finish();
    if (!queue.name.empty()) Insert(std::move(queue), marks);
  }

  std::vector<Queue> Finish() {
    CheckParents();
    CheckPromises();
    return std::move(queues_);
  }

 private:
  void Insert(Queue queue, QueueMarks marks) {
    const auto slash = queue.name.rfind('/');
    if (slash != std::string::npos) queue.parent = queue.name.substr(0, slash);
    queue.created_order = static_cast<std::int64_t>(queues_.size());
    const auto [at, fresh] = index_.emplace(queue.name, queues_.size());
    if (!fresh) {
      problems_.Error(
          marks.name, "the queue " + Quoted(queue.name) + " stands here twice",
          "each queue once; the first is in line " + std::to_string(marks_[at->second].name.line));
      return;
    }
    queues_.push_back(std::move(queue));
    marks_.push_back(marks);
  }

  bool CheckResource(const DocNode& child) {
    const auto meant = MeantResource(child.key);
    if (meant.empty() && IsResource(child.key)) return true;
    problems_.Error(child.key_mark,
                    Quoted(child.key) + " is not a resource" +
                        (meant.empty() ? "" : "; did you mean " + Quoted(meant) + "?"),
                    "gpus, cpus, memory, a GPU type (capital letter or digit first), or a "
                    "countable thing (small letter first)");
    return false;
  }

  bool CheckMap(const DocNode& node, std::string_view example) {
    if (node.kind == DocKind::kMap) return true;
    problems_.Error(node.mark, NameOf(node) + " must be a map, not " + DescribeNode(node),
                    std::string(example));
    return false;
  }

  Amounts ReadAmounts(const DocNode& node) {
    Amounts out;
    if (!CheckMap(node, "{gpus: 16, H100: 8}")) return out;
    for (const auto& child : node.children) {
      if (!CheckResource(child)) continue;
      if (child.kind == DocKind::kScalar && child.text == kUnlimitedWord) {
        out.emplace(child.key, kUnlimited);
      } else if (const auto value = ReadQuantity(child, UnitOf(child.key), problems_)) {
        out.emplace(child.key, *value);
      }
    }
    return out;
  }

  void CheckQuotaBelowLimit(const Queue& queue, const DocNode& limit) {
    for (const auto& child : limit.children) {
      const auto quota = queue.quota.find(child.key);
      const auto most = queue.limit.find(child.key);
      if (quota == queue.quota.end() || most == queue.limit.end()) continue;
      if (quota->second == kUnlimited || quota->second <= most->second) continue;
      const auto unit = UnitOf(child.key);
      problems_.Error(child.mark,
                      "the limit of " + Quoted(child.key) + " is below the quota of " +
                          WriteQuantity(quota->second, unit),
                      WriteQuantity(quota->second, unit) + " or more, or `unlimited`");
    }
  }

  void ReadWeight(const DocNode& node, Queue& queue) {
    const Bounds bounds{0, kMostWeightMilli};
    if (node.kind == DocKind::kScalar) {
      queue.general_weight_milli =
          ReadQuantity(node, Quantity::kShare, problems_, bounds).value_or(kMilli);
      return;
    }
    if (!CheckMap(node, "a number, or a map such as {default: 1, gpus: 2}")) return;
    for (const auto& child : node.children) {
      if (child.key != kGeneralWeight && !CheckResource(child)) continue;
      const auto value = ReadQuantity(child, Quantity::kShare, problems_, bounds);
      if (!value) continue;
      if (child.key == kGeneralWeight) {
        queue.general_weight_milli = *value;
      } else {
        queue.weight.emplace(child.key, *value);
      }
    }
  }

  void ReadConfinement(MapReader& reader, Confinement& out) {
    if (const auto* types = reader.Take("gpu_types")) {
      out.gpu_types = ReadGpuTypes(*types, problems_);
    }
    if (const auto* nodes = reader.Take("nodes")) out.nodes = ReadLabels(*nodes, problems_);
  }

  void ReadDuration(const DocNode* node, std::int64_t& out) {
    if (node == nullptr) return;
    out = ReadQuantity(*node, Quantity::kDuration, problems_).value_or(0);
  }

  void ReadKinds(const DocNode& node, Queue& queue) {
    MapReader reader(node, "kinds", problems_);
    for (std::size_t i = 0; i < kJobKindNames.size(); ++i) {
      const auto* rule = reader.Take(kJobKindNames[i]);
      if (rule == nullptr) continue;
      MapReader inner(*rule, "the rule of a kind", problems_);
      KindRule out;
      ReadConfinement(inner, out.confinement);
      ReadDuration(inner.Take("idle"), out.idle_ms);
      inner.Finish();
      queue.kinds.emplace(static_cast<JobKind>(i), std::move(out));
    }
    reader.Finish();
  }

  void ReadMembers(const DocNode& node, Queue& queue) {
    if (!CheckMap(node, "{\"group:vision\": user}")) return;
    for (const auto& child : node.children) {
      const auto colon = child.key.find(':');
      const auto sort = child.key.substr(0, colon);
      if (colon == std::string::npos || (sort != "user" && sort != "group") ||
          !IsLabelName(std::string_view(child.key).substr(colon + 1))) {
        problems_.Error(child.key_mark, Quoted(child.key) + " is not a member",
                        "`user:NAME` or `group:NAME`, in quotes");
      } else if (const auto role = ReadChoice(child, kMemberRoleNames, problems_)) {
        queue.members.emplace(child.key, kMemberRoleNames[*role]);
      }
    }
  }

  void CheckParents() {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const auto& parent = queues_[i].parent;
      if (parent.empty() || index_.contains(parent)) continue;
      problems_.Warning(marks_[i].name, "the queue " + Quoted(queues_[i].name) + " has no parent " +
                                            Quoted(parent) +
                                            " in this file, so it must be there already");
    }
  }

  // GPUs that a parent does not name are a promise of none; other things are not promised by name.
  void CheckPromises() {
    std::map<std::string, Amounts> sums;
    for (const auto& queue : queues_) {
      if (queue.parent.empty()) continue;
      auto& sum = sums[queue.parent];
      for (const auto& [resource, amount] : queue.quota) {
        auto& total = sum[resource];
        total = amount >= kUnlimited - total ? kUnlimited : total + amount;
      }
    }
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const auto found = sums.find(queues_[i].name);
      if (found == sums.end()) continue;
      for (const auto& [resource, total] : found->second) {
        const auto own = queues_[i].quota.find(resource);
        if (own == queues_[i].quota.end() && resource != kGpus) continue;
        const auto promised = own == queues_[i].quota.end() ? 0 : own->second;
        if (total <= promised) continue;
        const auto unit = UnitOf(resource);
        problems_.Warning(marks_[i].quota,
                          "the queues under " + Quoted(queues_[i].name) + " are promised " +
                              (total == kUnlimited ? "unlimited" : WriteQuantity(total, unit)) +
                              " " + resource + ", more than its own quota of " +
                              WriteQuantity(promised, unit));
      }
    }
  }

  Problems& problems_;
  std::vector<Queue> queues_;
  std::vector<QueueMarks> marks_;
  std::map<std::string, std::size_t> index_;
};

DocNode AmountsNode(const Amounts& amounts) {
  auto map = MapNode();
  for (const auto& [resource, amount] : amounts) {
    const auto unit = UnitOf(resource);
    const auto text =
        amount == kUnlimited ? std::string(kUnlimitedWord) : WriteQuantity(amount, unit);
    const bool plain = amount != kUnlimited && unit != Quantity::kBytes;
    Put(map, resource, plain ? PlainNode(text) : TextNode(text));
  }
  return map;
}

void PutConfinement(const Confinement& confinement, DocNode& out) {
  if (!confinement.gpu_types.empty()) Put(out, "gpu_types", TextListNode(confinement.gpu_types));
  if (!confinement.nodes.empty()) Put(out, "nodes", TextMapNode(confinement.nodes));
}

void PutWeight(const Queue& queue, DocNode& out) {
  if (queue.weight.empty()) {
    if (queue.general_weight_milli == kMilli) return;
    Put(out, "weight", PlainNode(FormatMilli(queue.general_weight_milli)));
    return;
  }
  auto& map = Put(out, "weight", MapNode());
  if (queue.general_weight_milli != kMilli) {
    Put(map, kGeneralWeight, PlainNode(FormatMilli(queue.general_weight_milli)));
  }
  for (const auto& [resource, weight] : queue.weight) {
    Put(map, resource, PlainNode(FormatMilli(weight)));
  }
}

DocNode QueueNode(const Queue& queue) {
  auto out = MapNode();
  Put(out, "name", TextNode(queue.name));
  if (queue.priority != kDefaultPriority) Put(out, "priority", NumberNode(queue.priority));
  if (!queue.quota.empty()) Put(out, "quota", AmountsNode(queue.quota));
  if (!queue.limit.empty()) Put(out, "limit", AmountsNode(queue.limit));
  PutWeight(queue, out);
  PutConfinement(queue.confinement, out);
  if (!queue.kinds.empty()) {
    auto& kinds = Put(out, "kinds", MapNode());
    for (const auto& [kind, rule] : queue.kinds) {
      auto& map = Put(kinds, NameOf(kind), MapNode());
      PutConfinement(rule.confinement, map);
      if (rule.idle_ms != 0) Put(map, "idle", TextNode(FormatDurationMs(rule.idle_ms)));
    }
  }
  if (!queue.members.empty()) Put(out, "members", TextMapNode(queue.members));
  const auto duration = [&](std::string_view key, std::int64_t ms) {
    if (ms != 0) Put(out, key, TextNode(FormatDurationMs(ms)));
  };
  duration("reclaim_min_runtime", queue.reclaim_min_runtime_ms);
  duration("preempt_min_runtime", queue.preempt_min_runtime_ms);
  return out;
}

}  // namespace

std::vector<Queue> QueuesFromNodes(std::span<const DocNode* const> lists, Problems& problems) {
  QueueReader reader(problems);
  for (const auto* list : lists) {
    if (list->kind != DocKind::kSequence || list->children.empty()) {
      problems.Error(list->mark,
                     "`queues` must be a list of at least one queue, not " + DescribeNode(*list),
                     "- {name: vision, quota: {gpus: 16}}");
      continue;
    }
    for (const auto& item : list->children) reader.Read(item);
  }
  return reader.Finish();
}

DocNode QueuesToNode(const std::vector<Queue>& queues) {
  auto list = ListNode();
  for (const auto& queue : queues) list.children.push_back(QueueNode(queue));
  return list;
}

Result<std::vector<Queue>> DecodeQueues(std::string_view text) {
  auto decoded = DecodeSpec(text);
  if (!decoded.problems.HasErrors() && decoded.spec.queues.empty()) {
    decoded.problems.Error({}, "the file holds no queues", "`queues: [...]`");
  }
  if (decoded.problems.HasErrors()) return tl::unexpected(ToError(decoded.problems));
  return std::move(decoded.spec.queues);
}

std::string EncodeQueues(const std::vector<Queue>& queues, TextFormat format) {
  auto out = MapNode();
  Put(out, "queues", QueuesToNode(queues));
  return WriteDocument(out, format);
}

}  // namespace muster::model

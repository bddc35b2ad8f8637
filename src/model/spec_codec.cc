#include "model/spec_codec.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/fields.h"
#include "model/job_codec.h"
#include "model/paths.h"
#include "model/queue_codec.h"

namespace muster::model {
namespace {

bool IsClusterDocument(const DocNode& node) {
  if (node.Find("queues") != nullptr || node.Find("pools") != nullptr) return true;
  const auto* topology = node.Find("topology");
  return topology != nullptr && topology->kind == DocKind::kSequence &&
         node.Find("name") == nullptr;
}

// A list of jobs, or one under the only key `jobs`; else nothing.
const DocNode* JobsOf(const DocNode& document) {
  if (document.kind == DocKind::kSequence) return &document;
  if (document.kind != DocKind::kMap || document.children.size() != 1) return nullptr;
  const auto* jobs = document.Find("jobs");
  return jobs != nullptr && jobs->kind == DocKind::kSequence ? jobs : nullptr;
}

AmountsAt AmountsOf(const DocNode& job) {
  if (job.Find("roles") != nullptr) return AmountsAt::kRoles;
  return job.Find("resources") != nullptr ? AmountsAt::kResources : AmountsAt::kTop;
}

SpecKind KindOf(bool job, bool queues, bool cluster) {
  if (job && (queues || cluster)) return SpecKind::kMixed;
  if (job) return SpecKind::kJob;
  if (cluster) return SpecKind::kCluster;
  return queues ? SpecKind::kQueues : SpecKind::kUnknown;
}

}  // namespace

std::string_view NameOf(SpecKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"unknown", "job", "queues", "cluster",
                                                      "mixed"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

void Decode(const std::vector<DocNode>& documents, DecodedSpec& out) {
  auto& problems = out.problems;
  if (documents.empty()) {
    if (!problems.HasErrors()) {
      problems.Error({}, "the file is empty", "a job, `queues:`, or `pools:` and `topology:`");
    }
    return;
  }
  std::vector<const DocNode*> queues, pools;
  const DocNode* topology = nullptr;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const auto& document = documents[d];
    std::string at = documents.size() > 1 ? '[' + std::to_string(d) + ']' : "";
    if (const auto* list = JobsOf(document)) {
      if (list != &document) at += at.empty() ? "jobs" : ".jobs";
      for (std::size_t i = 0; i < list->children.size(); ++i) {
        if (problems.Full() && problems.HasErrors()) break;  // who reads it has enough to do
        out.spec.jobs.push_back(JobFromNode(list->children[i], problems));
        out.job_paths.push_back(fmt::format("{}[{}]", at, i));
        out.amounts.push_back(AmountsOf(list->children[i]));
      }
      if (list->children.empty()) problems.Error(list->mark, "the list has no jobs");
      continue;
    }
    if (!IsClusterDocument(document)) {
      out.spec.jobs.push_back(JobFromNode(document, problems));
      out.job_paths.push_back(std::move(at));
      out.amounts.push_back(AmountsOf(document));
      continue;
    }
    MapReader reader(document, "a cluster file", problems);
    if (const auto* list = reader.Take("queues")) queues.push_back(list);
    if (const auto* list = reader.Take("pools")) pools.push_back(list);
    if (const auto* levels = reader.Take("topology")) {
      if (topology != nullptr) {
        problems.Error(levels->key_mark, "`topology` stands here twice",
                       "once; the first is in line " + std::to_string(topology->key_mark.line));
      }
      topology = levels;
    }
    reader.Finish();
  }
  out.spec.queues = QueuesFromNodes(queues, problems);
  out.spec.cluster.pools = PoolsFromNodes(pools, problems);
  if (topology != nullptr) out.spec.cluster.topologies = TopologiesFromNode(*topology, problems);
  out.spec.kind =
      KindOf(!out.spec.jobs.empty(), !queues.empty(), !pools.empty() || topology != nullptr);
}

}  // namespace

DecodedSpec DecodeSpec(std::string_view text) {
  DecodedSpec out;
  const auto documents = ParseDocuments(text, out.problems);
  Decode(documents, out);
  if (out.problems.HasErrors()) LocateProblems(documents, out.problems);
  return out;
}

Result<std::string> EncodeSpec(const SpecFile& spec, TextFormat format) {
  std::vector<DocNode> documents;
  auto cluster = MapNode();
  PutCluster(spec.cluster, cluster);
  if (!spec.queues.empty()) Put(cluster, "queues", QueuesToNode(spec.queues));
  if (!cluster.children.empty()) documents.push_back(std::move(cluster));
  for (const auto& job : spec.jobs) documents.push_back(JobToNode(job));
  if (format == TextFormat::kJson && documents.size() != 1) {
    return Fail(ErrorCode::kInvalid,
                "JSON holds one document, not " + std::to_string(documents.size()),
                "write YAML, or one file each");
  }
  std::string out;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (i > 0) out += "---\n";
    out += WriteDocument(documents[i], format);
  }
  return out;
}

}  // namespace muster::model

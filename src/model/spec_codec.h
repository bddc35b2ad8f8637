// Any file a person may hand in: told by its keys, read in one pass with all its mistakes.
//
// A document with `queues` or `pools`, or with a list under `topology`, describes the cluster; any
// other is a job, or a list of jobs, which may stand under `jobs`. A file may hold several
// documents, and queues and pools together. The queues of all documents are one tree. What was
// decoded may be used only when the problems hold no error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_codec.h"
#include "model/document_writer.h"
#include "model/job.h"
#include "model/problems.h"
#include "model/queue.h"

namespace muster::model {

enum class SpecKind : std::uint8_t { kUnknown, kJob, kQueues, kCluster, kMixed };
std::string_view NameOf(SpecKind kind);  // "unknown", "job", "queues", "cluster", "mixed"

struct SpecFile {
  SpecKind kind = SpecKind::kUnknown;  // kCluster also where queues stand beside pools
  std::vector<Job> jobs;
  std::vector<Queue> queues;
  ClusterFile cluster;
  friend bool operator==(const SpecFile&, const SpecFile&) = default;
};

// Where a job's file has what a worker gets.
enum class AmountsAt : std::uint8_t { kTop, kResources, kRoles };

struct DecodedSpec {
  SpecFile spec;
  std::vector<std::string> job_paths;  // of each job, as in `problems`: "jobs[1]"
  std::vector<AmountsAt> amounts;      // of each
  Problems problems;
};

DecodedSpec DecodeSpec(std::string_view text);

// All of it as one file: YAML documents, or JSON where there is one document only.
Result<std::string> EncodeSpec(const SpecFile& spec, TextFormat format);

}  // namespace muster::model

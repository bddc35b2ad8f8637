// The cluster file: `pools` and `topology`.
//
// A pool whose driver is `simulated` describes its nodes in the file; a `local` one may bring
// virtual GPUs; the others find their nodes by themselves. `topology` is one list of levels, widest
// first, or a map of named lists where a cluster has several. Totals are bounded, so that expanding
// a file of a few bytes cannot fill the memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/document.h"
#include "model/document_writer.h"
#include "model/node.h"
#include "model/problems.h"

namespace muster::model {

inline constexpr std::int64_t kMostNodes = 1'000'000;
inline constexpr std::int64_t kMostGpusPerNode = 64;
inline constexpr std::int64_t kMostGpus = 10'000'000;

struct ClusterFile {
  std::vector<Pool> pools;
  std::vector<Topology> topologies;  // one without a name where the file has a plain list
  friend bool operator==(const ClusterFile&, const ClusterFile&) = default;
};

// The values of the key `pools` in the documents of one file.
std::vector<Pool> PoolsFromNodes(std::span<const DocNode* const> lists, Problems& problems);
std::vector<Topology> TopologiesFromNode(const DocNode& node, Problems& problems);
void PutCluster(const ClusterFile& cluster, DocNode& out);

Result<ClusterFile> DecodeCluster(std::string_view text);
std::string EncodeCluster(const ClusterFile& cluster, TextFormat format);

}  // namespace muster::model

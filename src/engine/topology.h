// TopologyTable: the domains of every level, and which node lies in which.
//
// Levels above the node come from labels: a domain is the path of label values from the widest
// level down, so that equal rack names in two zones are two racks. `node`, `numa` and `nvlink` are
// built in; the last two divide the GPUs of a node. A node without the label lies in no domain of
// that level.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/ids.h"
#include "model/node.h"

namespace muster::engine {

struct Domain {
  std::string name;
  std::vector<NodeId> nodes;
  std::uint64_t devices = ~0ULL;  // below the node: which of its GPUs
};

struct Level {
  std::string topology;
  std::string name;
  LevelId wider = kNone;
  bool below_node = false;
  std::vector<DomainId> domain_of;  // by node; for levels below the node the node's first domain
  std::vector<Domain> domains;
  std::map<std::string, DomainId> by_name;
};

class TopologyTable {
 public:
  explicit TopologyTable(std::span<const model::Topology> topologies);

  void AddNode(NodeId id, const model::Node& node);

  // An empty topology name means the first one. kNone: no such level.
  LevelId Find(const std::string& topology, const std::string& level) const;
  const Level& level(LevelId id) const { return levels_[id]; }
  std::size_t level_count() const { return levels_.size(); }

 private:
  void AddDomain(Level& level, NodeId id, const std::string& name, std::uint64_t devices);
  std::vector<Level> levels_;  // of one topology after another, widest first
};

}  // namespace muster::engine

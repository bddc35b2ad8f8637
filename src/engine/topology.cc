#include "engine/topology.h"

#include <algorithm>

namespace muster::engine {
namespace {

// The GPUs of a node by NUMA node or NVLink island; a GPU without NVLink is an island of its own.
std::map<int, std::uint64_t> Parts(const model::Node& node, bool by_island) {
  std::map<int, std::uint64_t> parts;
  int alone = -1;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const auto& gpu = node.gpus[i];
    int part = by_island ? gpu.nvlink_island : gpu.numa;
    if (by_island && part < 0) part = alone--;
    parts[part] |= 1ULL << i;
  }
  return parts;
}

}  // namespace

TopologyTable::TopologyTable(std::span<const model::Topology> topologies) {
  const auto add = [&](const std::string& topology, std::vector<std::string> names) {
    for (const auto* built_in : {model::kLevelNode, model::kLevelNuma, model::kLevelNvlink}) {
      if (std::find(names.begin(), names.end(), built_in) == names.end()) {
        names.emplace_back(built_in);
      }
    }
    LevelId wider = kNone;
    for (const auto& name : names) {
      Level level;
      level.topology = topology;
      level.name = name;
      level.wider = wider;
      level.below_node = name == model::kLevelNuma || name == model::kLevelNvlink;
      wider = static_cast<LevelId>(levels_.size());
      levels_.push_back(std::move(level));
    }
  };
  for (const auto& topology : topologies) add(topology.name, topology.levels);
  if (topologies.empty()) add("", {});
}

LevelId TopologyTable::Find(const std::string& topology, const std::string& level) const {
  for (LevelId id = 0; id < levels_.size(); ++id) {
    const bool same = topology.empty() ? levels_[id].topology == levels_[0].topology
                                       : levels_[id].topology == topology;
    if (same && levels_[id].name == level) return id;
  }
  return kNone;
}

void TopologyTable::AddDomain(Level& level, NodeId id, const std::string& name,
                              std::uint64_t devices) {
  const auto [found, added] =
      level.by_name.emplace(name, static_cast<DomainId>(level.domains.size()));
  if (added) level.domains.push_back({name, {}, devices});
  level.domains[found->second].nodes.push_back(id);
  if (level.domain_of[id] == kNone) level.domain_of[id] = found->second;
}

void TopologyTable::AddNode(NodeId id, const model::Node& node) {
  std::string path;  // of the labels it has: a rack without a zone is a rack
  for (auto& level : levels_) {
    if (level.wider == kNone) path.clear();
    level.domain_of.resize(std::max<std::size_t>(level.domain_of.size(), id + 1), kNone);
    if (level.below_node) {
      for (const auto& [part, devices] : Parts(node, level.name == model::kLevelNvlink)) {
        AddDomain(level, id, node.name + "/" + level.name + std::to_string(part), devices);
      }
      continue;
    }
    const auto label = node.labels.find(level.name);
    if (label != node.labels.end()) {
      path += "/" + label->second;
      AddDomain(level, id, path, ~0ULL);
    } else if (level.name == model::kLevelNode) {
      AddDomain(level, id, node.name, ~0ULL);
    } else {
      path += "/";  // apart from those that have the label
    }
  }
}

}  // namespace muster::engine

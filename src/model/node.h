// Node, GPU, link, NIC and topology: the machines as values.
//
// A node's place in the cluster is given by its labels; a topology names the labels that form
// levels, widest first. Below the node, each GPU knows its NUMA node, PCIe switch and NVLink
// island, which is what placement inside a node is decided by.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/resources.h"

namespace muster::model {

using Labels = std::map<std::string, std::string>;

struct Gpu {
  std::string type;  // empty: unnamed
  std::int64_t memory_bytes = 0;
  int numa = 0;
  int pcie_switch = -1;    // -1: unknown, no two GPUs share it
  int nvlink_island = -1;  // -1: no NVLink
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Nic {
  std::string name;
  int numa = 0;
  friend bool operator==(const Nic&, const Nic&) = default;
};

struct Node {
  std::string name;
  std::string pool;
  std::vector<Gpu> gpus;
  int sockets = 1;  // NUMA nodes; cores and memory are spread evenly over them
  std::vector<Nic> nics;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  Amounts other;
  int max_workers = 1000;
  Labels labels;
  bool cordoned = false;  // takes no new worker
  bool draining = false;  // and sends its preemptible workers elsewhere
  friend bool operator==(const Node&, const Node&) = default;
};

struct Topology {
  std::string name;
  std::vector<std::string> levels;  // label names, widest first; node, numa and nvlink are built in
  friend bool operator==(const Topology&, const Topology&) = default;
};

inline constexpr const char* kLevelNode = "node";
inline constexpr const char* kLevelNuma = "numa";
inline constexpr const char* kLevelNvlink = "nvlink";

// One line of a simulated pool: `count` nodes that are alike.
struct NodeGroup {
  std::int64_t count = 1;
  std::int64_t gpus = 0;
  std::string type;
  std::int64_t gpu_memory_bytes = 0;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t sockets = 1;
  std::int64_t nics = 0;
  std::int64_t nvlink_size = 0;     // GPUs per island; 0: none ("all" is the number of GPUs)
  std::int64_t nodes_per_rack = 0;  // 0: no rack label
  std::int64_t racks_per_zone = 0;  // 0: no zone label
  Amounts other;
  Labels labels;
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

enum class PoolDriver : std::uint8_t { kLocal, kSimulated, kKubernetes, kSlurm };
enum class PoolRole : std::uint8_t { kPrimary, kBurst };

struct VirtualGpus {
  std::int64_t count = 0;
  std::string type = "virtual";
  std::int64_t memory_bytes = 0;
  std::int64_t cores_each_milli = 0;
  friend bool operator==(const VirtualGpus&, const VirtualGpus&) = default;
};

struct Pool {
  std::string name;
  PoolDriver driver = PoolDriver::kLocal;
  PoolRole role = PoolRole::kPrimary;
  VirtualGpus virtual_gpus;
  std::vector<NodeGroup> nodes;
  friend bool operator==(const Pool&, const Pool&) = default;
};

// The type of these GPUs of the node: of the first of them. Empty: unnamed, or none.
std::string GpuTypeOf(const Node& node, std::uint64_t devices);

// The nodes of a pool whose file describes them, named POOL-0, POOL-1, ...
std::vector<Node> ExpandNodes(const Pool& pool);

}  // namespace muster::model

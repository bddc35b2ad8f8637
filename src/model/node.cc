#include "model/node.h"

#include <algorithm>
#include <bit>

namespace muster::model {
namespace {

// Item i of n spread over the sockets in order: 8 GPUs on 2 sockets are 0,0,0,0,1,1,1,1.
int SocketOf(std::int64_t item, std::int64_t items, std::int64_t sockets) {
  return static_cast<int>(item * sockets / items);
}

Node NodeLike(const NodeGroup& group) {
  Node node;
  node.sockets = static_cast<int>(group.sockets);
  node.cpu_milli = group.cpu_milli;
  node.memory_bytes = group.memory_bytes;
  node.other = group.other;
  node.labels = group.labels;
  for (std::int64_t i = 0; i < group.gpus; ++i) {
    Gpu gpu;
    gpu.type = group.type;
    gpu.memory_bytes = group.gpu_memory_bytes;
    gpu.numa = SocketOf(i, group.gpus, group.sockets);
    if (group.nvlink_size > 0) gpu.nvlink_island = static_cast<int>(i / group.nvlink_size);
    node.gpus.push_back(std::move(gpu));
  }
  for (std::int64_t i = 0; i < group.nics; ++i) {
    node.nics.push_back({"nic" + std::to_string(i), SocketOf(i, group.nics, group.sockets)});
  }
  return node;
}

Node VirtualNode(const VirtualGpus& virtual_gpus) {
  NodeGroup group;
  group.gpus = virtual_gpus.count;
  group.type = virtual_gpus.type;
  group.gpu_memory_bytes = virtual_gpus.memory_bytes;
  group.cpu_milli = virtual_gpus.count * virtual_gpus.cores_each_milli;
  group.memory_bytes = virtual_gpus.count * virtual_gpus.memory_bytes;
  group.labels["virtual"] = "true";
  return NodeLike(group);
}

}  // namespace

std::string GpuTypeOf(const Node& node, std::uint64_t devices) {
  const auto first = static_cast<std::size_t>(std::countr_zero(devices));
  return first < node.gpus.size() ? node.gpus[first].type : "";
}

std::vector<Node> ExpandNodes(const Pool& pool) {
  std::vector<Node> nodes;
  const auto add = [&](Node node) {
    node.name = pool.name + "-" + std::to_string(nodes.size());
    node.pool = pool.name;
    nodes.push_back(std::move(node));
  };
  if (pool.virtual_gpus.count > 0) add(VirtualNode(pool.virtual_gpus));
  std::int64_t racks = 0, zones = 0;
  for (const auto& group : pool.nodes) {
    const auto like = NodeLike(group);
    std::int64_t last_rack = -1, last_zone = -1;
    for (std::int64_t i = 0; i < group.count; ++i) {
      auto node = like;
      if (group.nodes_per_rack > 0) {
        last_rack = i / group.nodes_per_rack;
        node.labels["rack"] = pool.name + "-rack-" + std::to_string(racks + last_rack);
        if (group.racks_per_zone > 0) {
          last_zone = last_rack / group.racks_per_zone;
          node.labels["zone"] = pool.name + "-zone-" + std::to_string(zones + last_zone);
        }
      }
      add(std::move(node));
    }
    // A rack holds nodes of one kind: the next group begins a new one.
    racks += last_rack + 1;
    zones += last_zone + 1;
  }
  return nodes;
}

}  // namespace muster::model

#include "engine/explain_ever.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/units.h"

namespace muster::engine {

using model::GpuKind;
using Kind = Shortage::Kind;

namespace {

bool RightType(const Shape& shape, const Bank& bank) {
  return bank.type != kNone && shape.type_rank[bank.type] != kNone;
}

std::int64_t EverOnBank(const Cluster& cluster, const Shape& shape, BankId b, std::uint64_t devices,
                        std::int64_t workers) {
  const auto& nodes = cluster.nodes();
  const auto& gpu = shape.spec.request.gpu;
  const Bank& bank = nodes.bank(b);
  const NodeState& node = nodes.node(bank.node);
  if (!shape.allowed[b]) return 0;
  std::int64_t slots = node.max_workers;
  if (gpu.kind == GpuKind::kNone) {
    if (b != node.first_bank) return 0;  // counted once a node
  } else {
    if (!RightType(shape, bank) || cluster.shapes().UnitsOn(shape, bank) > bank.memory) return 0;
    slots = std::min<std::int64_t>(slots, std::popcount(bank.mask & devices) / gpu.devices);
    if (shape.spec.same_device && gpu.kind != GpuKind::kWhole) slots = workers;
  }
  for (std::size_t d = 0; d < nodes.host_dims(); ++d) {
    if (shape.host[d] > 0) slots = std::min(slots, node.capacity[d] / shape.host[d]);
  }
  return slots;
}

}  // namespace

std::int64_t EverOn(const Cluster& cluster, ShapeId shape, NodeId node, std::uint64_t devices,
                    std::int64_t workers) {
  const NodeState& state = cluster.nodes().node(node);
  std::int64_t sum = 0;
  for (BankId b = state.first_bank; b < state.first_bank + state.bank_count; ++b) {
    sum += EverOnBank(cluster, cluster.shapes()[shape], b, devices, workers);
  }
  return sum;
}

std::int64_t FitEver(const Cluster& cluster, ShapeId shape, LevelId level, std::int64_t workers,
                     Nodes which) {
  const auto& nodes = cluster.nodes();
  const auto on_node = [&](NodeId node, std::uint64_t devices) {
    const bool counts = which == Nodes::kAll || nodes.node(node).Usable();
    return counts ? EverOn(cluster, shape, node, devices, workers) : 0;
  };
  std::int64_t all = 0, most = 0;
  if (level == kNone) {
    for (NodeId node = 0; node < nodes.size(); ++node) all += on_node(node, ~0ULL);
    return all;
  }
  for (const auto& domain : cluster.topology().level(level).domains) {
    all = 0;
    for (const NodeId node : domain.nodes) all += on_node(node, domain.devices);
    most = std::max(most, all);
  }
  return most;
}

Shortage FindShortage(const Cluster& cluster, ShapeId id, LevelId level, std::int64_t workers) {
  const auto& nodes = cluster.nodes();
  const Shape& shape = cluster.shapes()[id];
  const auto& gpu = shape.spec.request.gpu;
  bool allowed = false, typed = false;
  std::int64_t memory = 0, gpus = 0;
  HostVec host{};
  for (BankId b = 0; b < nodes.bank_count(); ++b) {
    if (!shape.allowed[b]) continue;
    allowed = true;
    const Bank& bank = nodes.bank(b);
    for (std::size_t d = 0; d < nodes.host_dims(); ++d) {
      host[d] = std::max(host[d], nodes.node(bank.node).capacity[d]);
    }
    if (!RightType(shape, bank)) continue;
    typed = true;
    memory = std::max(memory, bank.memory);
    gpus = std::max<std::int64_t>(gpus, std::popcount(bank.mask));
  }
  const auto is = [&](Kind kind, std::int64_t asked, std::int64_t most, std::size_t dim = 0) {
    return Shortage{kind, id, dim, asked, most, level};
  };
  if (!allowed) return is(Kind::kPlace, 0, 0);
  if (gpu.kind != GpuKind::kNone) {
    if (!typed) return is(Kind::kGpuType, gpu.devices, 0);
    if (gpu.kind == GpuKind::kMemory && gpu.memory_bytes > memory) {
      return is(Kind::kGpuMemory, gpu.memory_bytes, memory);
    }
    if (gpu.devices > gpus) return is(Kind::kGpus, gpu.devices, gpus);
  }
  for (std::size_t d = 0; d < nodes.host_dims(); ++d) {
    if (shape.host[d] > host[d]) return is(Kind::kHost, shape.host[d], host[d], d);
  }
  const auto anywhere = FitEver(cluster, id, kNone, workers, Nodes::kAll);
  if (anywhere == 0) return is(Kind::kTogether, 0, 0);
  return is(Kind::kWorkers, workers, FitEver(cluster, id, level, workers, Nodes::kAll));
}

Vec LeastCost(const Cluster& cluster, const Piece& piece) {
  const auto& nodes = cluster.nodes();
  const auto dims = cluster.queues().dims();
  const auto price = [&](const Shape& shape) {
    Vec cost = shape.cost;
    if (shape.spec.request.gpu.kind != GpuKind::kMemory) return cost;
    std::int64_t least = cost[kGpuDim];
    for (BankId b = 0; b < nodes.bank_count(); ++b) {
      if (!shape.allowed[b] || !RightType(shape, nodes.bank(b))) continue;
      least = std::min(least, cluster.shapes().ChargeOn(shape, nodes.bank(b)));
    }
    for (std::size_t d = 0; d < cluster.queues().first_countable_dim(); ++d) {
      if (d != kCpuDim && d != kMemoryDim) cost[d] = std::min(cost[d], least);
    }
    return cost;
  };
  Vec sum, cost;
  ShapeId priced = kNone;
  for (const auto worker : piece.workers) {
    const ShapeId shape = cluster.job(piece.job).workers[worker].shape;
    if (shape != priced) cost = price(cluster.shapes()[shape]);
    priced = shape;
    sum.Add(cost, dims);
  }
  return sum;
}

namespace {

std::string Counted(std::int64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::string Joined(const std::vector<std::string>& items, const char* last) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == items.size() ? std::string(" ") + last + " " : ", ") + items[i];
  }
  return out;
}

// A machine's memory is an odd number of bytes, which nobody wants to read.
std::string Memory(std::int64_t bytes) {
  return FormatBytes(bytes < (1 << 30) ? bytes : bytes >> 20 << 20);
}

std::string HostAmount(const Cluster& cluster, std::size_t dim, std::int64_t amount) {
  if (dim == kHostCpu) return FormatMilli(amount) + (amount == kMilli ? " core" : " cores");
  if (dim == kHostMemory) return Memory(amount) + " of memory";
  return std::to_string(amount) + " " + cluster.nodes().host_names()[dim - kFirstHostOther];
}

// What one worker asks for: "1 GPU, 4 cores and 16Gi of memory".
std::string OneWorker(const Cluster& cluster, const Shape& shape) {
  const auto& gpu = shape.spec.request.gpu;
  std::vector<std::string> parts;
  if (gpu.kind == GpuKind::kWhole) parts.push_back(Counted(gpu.devices, "GPU"));
  if (gpu.kind == GpuKind::kShare) {
    parts.push_back(FormatMilli(gpu.devices * gpu.share_milli) + " GPUs");
  }
  if (gpu.kind == GpuKind::kMemory) parts.push_back(Memory(gpu.memory_bytes) + " of a GPU");
  for (std::size_t d = 0; d < cluster.nodes().host_dims(); ++d) {
    if (shape.host[d] > 0) parts.push_back(HostAmount(cluster, d, shape.host[d]));
  }
  return parts.empty() ? "nothing" : Joined(parts, "and");
}

std::string NoPlace(const Cluster& cluster, const ShapeSpec& spec) {
  const auto& nodes = cluster.nodes();
  if (spec.nowhere) return "where it wants to run, its queue and its kind do not let it";
  const auto any = [&](const auto& passes) {
    for (NodeId n = 0; n < nodes.size(); ++n) {
      if (passes(nodes.spec(n))) return true;
    }
    return false;
  };
  std::vector<std::string> labels;
  for (const auto& [key, value] : spec.labels) {
    auto& label = labels.emplace_back(key);
    label += '=';
    label += value;
    const bool there = any([&, k = key, v = value](const model::Node& node) {
      const auto found = node.labels.find(k);
      return found != node.labels.end() && found->second == v;
    });
    if (!there) return "no node has the label " + labels.back();
  }
  if (!spec.node_names) return "no node has all the labels " + Joined(labels, "and");
  const bool named = any([&](const model::Node& node) {
    return std::find(spec.node_names->begin(), spec.node_names->end(), node.name) !=
           spec.node_names->end();
  });
  if (!named) return "no node is called " + Joined(*spec.node_names, "or");
  return "no node called " + Joined(*spec.node_names, "or") + " has the label" +
         (labels.size() == 1 ? " " : "s ") + Joined(labels, "and");
}

bool Confined(const ShapeSpec& spec) { return !spec.labels.empty() || spec.node_names; }

std::string NoType(const Cluster& cluster, const Shortage& shortage) {
  const Shape& shape = cluster.shapes()[shortage.shape];
  const auto& nodes = cluster.nodes();
  std::vector<bool> seen(nodes.type_count(), false);
  std::vector<std::string> there;
  for (BankId b = 0; b < nodes.bank_count(); ++b) {
    const TypeId type = nodes.bank(b).type;
    if (!shape.allowed[b] || type == kNone || seen[type]) continue;
    seen[type] = true;
    const auto& name = nodes.type_name(type);
    there.push_back(name.empty() ? "GPUs without a type" : name);
  }
  std::sort(there.begin(), there.end());
  if (there.empty()) {
    return Counted(shortage.asked, "GPU") + " on one node " + (shortage.asked == 1 ? "is" : "are") +
           " asked for; no node" + (Confined(shape.spec) ? " that it may use" : "") + " has a GPU";
  }
  return "a GPU of type " + Joined(shape.spec.gpu_types, "or") + " is asked for; there " +
         (there.size() == 1 ? "is only " : "are ") + Joined(there, "and") +
         (Confined(shape.spec) ? " where it may run" : "");
}

}  // namespace

std::string Describe(const Cluster& cluster, const Shortage& shortage) {
  const Shape& shape = cluster.shapes()[shortage.shape];
  const bool one = shortage.asked == 1;
  const std::string largest = std::string("; the largest node") +
                              (Confined(shape.spec) ? " that it may use" : "") + " has ";
  const std::string type =
      shape.spec.gpu_types.empty() ? "" : " of type " + Joined(shape.spec.gpu_types, "or");
  switch (shortage.kind) {
    case Kind::kPlace:
      return NoPlace(cluster, shape.spec);
    case Kind::kGpuType:
      return NoType(cluster, shortage);
    case Kind::kGpuMemory:
      return Memory(shortage.asked) + " of one GPU are asked for; the largest GPU" + type +
             " has " + Memory(shortage.most);
    case Kind::kGpus:
      return Counted(shortage.asked, "GPU") + type + " on one node " + (one ? "is" : "are") +
             " asked for" + largest + std::to_string(shortage.most);
    case Kind::kHost:
      return HostAmount(cluster, shortage.host, shortage.asked) + " on one node are asked for" +
             largest + HostAmount(cluster, shortage.host, shortage.most);
    case Kind::kTogether:
      return OneWorker(cluster, shape) + type +
             " are asked for on one node; no node has all of that";
    case Kind::kWorkers: {
      const std::string level =
          shortage.level == kNone ? "" : cluster.topology().level(shortage.level).name;
      return Counted(shortage.asked, "worker") + " with " + OneWorker(cluster, shape) + type +
             (one ? " is" : " each are") + " asked for at once" +
             (level.empty() ? "; all nodes together have room for "
                            : " within one " + level + "; the largest has room for ") +
             std::to_string(shortage.most);
    }
  }
  return "";
}

}  // namespace muster::engine

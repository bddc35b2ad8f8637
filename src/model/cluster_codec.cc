#include "model/cluster_codec.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/units.h"
#include "model/fields.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

constexpr std::int64_t kMostMemoryPerNode = std::int64_t{1} << 50;
constexpr std::int64_t kMostTotalBytes = std::int64_t{1} << 61;
constexpr std::int64_t kMostCoresPerNode = 100'000;
constexpr std::array<std::string_view, 3> kBuiltInLevels = {kLevelNode, kLevelNuma, kLevelNvlink};

class PoolReader {
 public:
  explicit PoolReader(Problems& problems) : problems_(problems) {}

  void Read(const DocNode& node) {
    MapReader reader(node, "a pool", problems_);
    Pool pool;
    if (const auto* name = reader.Require("name", "`name: lab`")) {
      pool.name =
          ReadMatching(*name, IsName, "the name of a pool", kNameRule, problems_).value_or("");
      const bool fresh = names_.emplace(pool.name, name->mark).second;
      if (!pool.name.empty() && !fresh) {
        problems_.Error(
            name->mark, "the pool " + Quoted(pool.name) + " stands here twice",
            "each pool once; the first is in line " + std::to_string(names_[pool.name].line));
      }
    }
    std::optional<std::size_t> driver;
    if (const auto* value =
            reader.Require("driver", "`driver: ` and " + JoinChoices(kPoolDriverNames))) {
      driver = ReadChoice(*value, kPoolDriverNames, problems_);
    }
    pool.driver = static_cast<PoolDriver>(driver.value_or(0));
    if (const auto* role = reader.Take("role")) {
      pool.role = static_cast<PoolRole>(ReadChoice(*role, kPoolRoleNames, problems_).value_or(0));
    }
    const auto* virtual_gpus = reader.Take("virtual_gpus");
    const auto* nodes = reader.Take("nodes");
    reader.Finish();
    if (virtual_gpus != nullptr) ReadVirtualGpus(*virtual_gpus, pool, driver.has_value());
    if (nodes != nullptr) {
      ReadNodes(*nodes, pool, driver.has_value());
    } else if (driver && pool.driver == PoolDriver::kSimulated) {
      problems_.Error(node.mark, "a simulated pool needs the key `nodes`",
                      "nodes: [{count: 4, gpus: 8, type: H100}]");
    }
    pools_.push_back(std::move(pool));
  }

  std::vector<Pool> Take() { return std::move(pools_); }

 private:
  std::int64_t Whole(MapReader& reader, std::string_view key, Bounds bounds, std::int64_t usual) {
    const auto* node = reader.Take(key);
    return node == nullptr ? usual : ReadInteger(*node, bounds, problems_).value_or(usual);
  }

  std::int64_t Amount(MapReader& reader, std::string_view key, Quantity quantity,
                      std::int64_t most) {
    const auto* node = reader.Take(key);
    if (node == nullptr) return 0;
    return ReadQuantity(*node, quantity, problems_, Bounds{0, most}).value_or(0);
  }

  std::string Type(const DocNode* node, std::string usual) {
    if (node == nullptr) return usual;
    return ReadMatching(*node, IsGpuTypeName, "a GPU type",
                        "a name beginning with a capital letter or a digit, or `virtual`",
                        problems_)
        .value_or(usual);
  }

  void ReadVirtualGpus(const DocNode& node, Pool& pool, bool driver_known) {
    if (driver_known && pool.driver != PoolDriver::kLocal) {
      problems_.Error(node.key_mark, "`virtual_gpus` is for a local pool", "`driver: local`");
    }
    MapReader reader(node, "`virtual_gpus`", problems_);
    auto& out = pool.virtual_gpus;
    if (const auto* count = reader.Require("count", "`count: 8`")) {
      out.count = ReadInteger(*count, {1, kMostGpusPerNode}, problems_).value_or(1);
    }
    out.type = Type(reader.Take("type"), std::string(kVirtualGpuType));
    out.memory_bytes = Amount(reader, "memory", Quantity::kBytes, kMostMemoryPerNode);
    out.cores_each_milli =
        Amount(reader, "cores_each", Quantity::kCores, kMostCoresPerNode * kMilli);
    reader.Finish();
  }

  void ReadNodes(const DocNode& node, Pool& pool, bool driver_known) {
    if (driver_known && pool.driver != PoolDriver::kSimulated) {
      problems_.Error(node.key_mark, "`nodes` is for a simulated pool",
                      "`driver: simulated`; other drivers find their nodes by themselves");
    }
    if (node.kind != DocKind::kSequence || node.children.empty()) {
      problems_.Error(node.mark, "`nodes` must be a list, not " + DescribeNode(node),
                      "nodes: [{count: 4, gpus: 8, type: H100}]");
      return;
    }
    for (const auto& item : node.children) pool.nodes.push_back(ReadNodeGroup(item));
  }

  NodeGroup ReadNodeGroup(const DocNode& node) {
    MapReader reader(node, "an entry of `nodes`", problems_);
    NodeGroup out;
    out.count = Whole(reader, "count", {1, kMostNodes}, 1);
    out.gpus = Whole(reader, "gpus", {0, kMostGpusPerNode}, 0);
    const auto* type = reader.Take("type");
    out.type = Type(type, "");
    const auto* gpu_memory = reader.Take("gpu_memory");
    if (gpu_memory != nullptr) {
      out.gpu_memory_bytes =
          ReadQuantity(*gpu_memory, Quantity::kBytes, problems_, Bounds{0, kMostMemoryPerNode})
              .value_or(0);
    }
    out.cpu_milli = Amount(reader, "cpus", Quantity::kCores, kMostCoresPerNode * kMilli);
    out.memory_bytes = Amount(reader, "memory", Quantity::kBytes, kMostMemoryPerNode);
    out.sockets = Whole(reader, "sockets", {1, 64}, 1);
    out.nics = Whole(reader, "nics", {0, 64}, 0);
    const auto* nvlink = reader.Take("nvlink");
    if (nvlink != nullptr) ReadNvlink(*nvlink, out);
    out.nodes_per_rack = Whole(reader, "nodes_per_rack", {0, kMostNodes}, 0);
    const auto* zone = reader.Take("racks_per_zone");
    if (zone != nullptr) {
      out.racks_per_zone = ReadInteger(*zone, {0, kMostNodes}, problems_).value_or(0);
      if (out.racks_per_zone > 0 && out.nodes_per_rack == 0) {
        problems_.Error(zone->key_mark, "`racks_per_zone` needs `nodes_per_rack`",
                        "`nodes_per_rack` above 0 beside it");
      }
    }
    if (const auto* resources = reader.Take("resources")) ReadCountables(*resources, out.other);
    if (const auto* labels = reader.Take("labels")) ReadNodeLabels(*labels, out);
    reader.Finish();
    for (const auto* key : {type, gpu_memory, nvlink}) {
      if (key == nullptr || out.gpus > 0) continue;
      problems_.Error(key->key_mark, NameOf(*key) + " stands beside no GPU", "`gpus` above 0");
    }
    CheckTotals(node, out);
    return out;
  }

  void ReadNvlink(const DocNode& node, NodeGroup& out) {
    if (node.kind == DocKind::kScalar && node.text == "all") {
      out.nvlink_size = out.gpus;
    } else if (node.kind != DocKind::kScalar || node.text != "none") {
      const auto size = node.kind == DocKind::kScalar ? ParseWhole(node.text) : std::nullopt;
      if (size && *size >= 1 && *size <= std::max<std::int64_t>(out.gpus, 1)) {
        out.nvlink_size = *size;
      } else {
        problems_.Error(node.mark, "`nvlink`: " + DescribeNode(node) + " is no size of an island",
                        "all, none, or a number of GPUs from 1 to `gpus`");
      }
    }
  }

  void ReadCountables(const DocNode& node, Amounts& out) {
    if (node.kind != DocKind::kMap) {
      problems_.Error(node.mark, "`resources` must be a map, not " + DescribeNode(node),
                      "{fpga: 1}");
      return;
    }
    for (const auto& child : node.children) {
      if (!IsCountableName(child.key) || !MeantResource(child.key).empty()) {
        problems_.Error(child.key_mark, Quoted(child.key) + " is not a countable resource",
                        "a name beginning with a small letter, such as fpga");
      } else if (const auto count =
                     ReadQuantity(child, Quantity::kPieces, problems_, Bounds{1, 1'000'000})) {
        out.emplace(child.key, *count);
      }
    }
  }

  void ReadNodeLabels(const DocNode& node, NodeGroup& out) {
    out.labels = ReadLabels(node, problems_);
    const auto taken = [&](std::string_view label, std::int64_t size, std::string_view key) {
      const auto* child = node.Find(label);
      if (child == nullptr || size == 0) return;
      problems_.Error(child->key_mark,
                      "the label " + Quoted(label) + " is made by " + Quoted(key) + " already",
                      "one of the two");
    };
    taken("rack", out.nodes_per_rack, "nodes_per_rack");
    taken("zone", out.racks_per_zone, "racks_per_zone");
  }

  // Each bound is checked before it is added, so nothing can overflow.
  void CheckTotals(const DocNode& node, const NodeGroup& group) {
    nodes_ += group.count;
    gpus_ += group.count * group.gpus;
    const auto bytes = group.memory_bytes + group.gpus * group.gpu_memory_bytes;
    const bool memory_fits = bytes <= (kMostTotalBytes - bytes_) / group.count;
    if (memory_fits) bytes_ += bytes * group.count;
    if (nodes_ <= kMostNodes && gpus_ <= kMostGpus && memory_fits) return;
    problems_.Error(node.mark, "the pools of the file are too large together",
                    std::to_string(kMostNodes) + " nodes, " + std::to_string(kMostGpus) +
                        " GPUs, 2048Pi of memory");
    nodes_ = gpus_ = 0;
  }

  Problems& problems_;
  std::vector<Pool> pools_;
  std::map<std::string, Mark> names_;
  std::int64_t nodes_ = 0;
  std::int64_t gpus_ = 0;
  std::int64_t bytes_ = 0;
};

std::vector<std::string> ReadLevels(const DocNode& node, Problems& problems) {
  auto levels = ReadNameList(node, IsLabelName, "the name of a level",
                             "a label of the nodes, or node, numa, nvlink", problems);
  std::size_t deepest = 0;  // how far down the built-in levels the list has come
  for (const auto& level : levels) {
    const auto found = std::find(kBuiltInLevels.begin(), kBuiltInLevels.end(), level);
    const auto depth = found == kBuiltInLevels.end()
                           ? 0
                           : static_cast<std::size_t>(found - kBuiltInLevels.begin()) + 1;
    if (depth < deepest) {
      problems.Error(node.mark,
                     "`topology`: the level " + Quoted(level) + " cannot be inside " +
                         Quoted(kBuiltInLevels[deepest - 1]),
                     "widest first: your own levels, then node, numa, nvlink");
      break;
    }
    deepest = depth;
  }
  return levels;
}

DocNode NodeGroupNode(const NodeGroup& group) {
  auto out = MapNode();
  const auto number = [&](std::string_view key, std::int64_t value, std::int64_t usual) {
    if (value != usual) Put(out, key, NumberNode(value));
  };
  number("count", group.count, 1);
  number("gpus", group.gpus, 0);
  if (!group.type.empty()) Put(out, "type", TextNode(group.type));
  if (group.gpu_memory_bytes > 0) {
    Put(out, "gpu_memory", TextNode(FormatBytes(group.gpu_memory_bytes)));
  }
  if (group.cpu_milli > 0) Put(out, "cpus", PlainNode(FormatMilli(group.cpu_milli)));
  if (group.memory_bytes > 0) Put(out, "memory", TextNode(FormatBytes(group.memory_bytes)));
  number("sockets", group.sockets, 1);
  number("nics", group.nics, 0);
  if (group.nvlink_size > 0) {
    Put(out, "nvlink",
        group.nvlink_size == group.gpus ? TextNode("all") : NumberNode(group.nvlink_size));
  }
  number("nodes_per_rack", group.nodes_per_rack, 0);
  number("racks_per_zone", group.racks_per_zone, 0);
  if (!group.other.empty()) {
    auto& map = Put(out, "resources", MapNode());
    for (const auto& [name, count] : group.other) Put(map, name, NumberNode(count));
  }
  if (!group.labels.empty()) Put(out, "labels", TextMapNode(group.labels));
  return out;
}

DocNode PoolNode(const Pool& pool) {
  auto out = MapNode();
  Put(out, "name", TextNode(pool.name));
  Put(out, "driver", TextNode(NameOf(pool.driver)));
  if (pool.role != PoolRole::kPrimary) Put(out, "role", TextNode(NameOf(pool.role)));
  const auto& gpus = pool.virtual_gpus;
  if (gpus.count > 0) {
    auto& map = Put(out, "virtual_gpus", MapNode());
    Put(map, "count", NumberNode(gpus.count));
    Put(map, "type", TextNode(gpus.type));
    if (gpus.memory_bytes > 0) Put(map, "memory", TextNode(FormatBytes(gpus.memory_bytes)));
    if (gpus.cores_each_milli > 0) {
      Put(map, "cores_each", PlainNode(FormatMilli(gpus.cores_each_milli)));
    }
  }
  if (!pool.nodes.empty()) {
    auto& list = Put(out, "nodes", ListNode());
    for (const auto& group : pool.nodes) list.children.push_back(NodeGroupNode(group));
  }
  return out;
}

}  // namespace

std::vector<Pool> PoolsFromNodes(std::span<const DocNode* const> lists, Problems& problems) {
  PoolReader reader(problems);
  for (const auto* list : lists) {
    if (list->kind != DocKind::kSequence || list->children.empty()) {
      problems.Error(list->mark,
                     "`pools` must be a list of at least one pool, not " + DescribeNode(*list),
                     "- {name: here, driver: local}");
      continue;
    }
    for (const auto& item : list->children) reader.Read(item);
  }
  return reader.Take();
}

std::vector<Topology> TopologiesFromNode(const DocNode& node, Problems& problems) {
  std::vector<Topology> out;
  if (node.kind != DocKind::kMap) {
    out.push_back({"", ReadLevels(node, problems)});
    return out;
  }
  for (const auto& child : node.children) {
    if (!IsName(child.key)) {
      problems.Error(child.key_mark, Quoted(child.key) + " is not the name of a topology",
                     std::string(kNameRule));
    }
    out.push_back({child.key, ReadLevels(child, problems)});
  }
  return out;
}

void PutCluster(const ClusterFile& cluster, DocNode& out) {
  if (!cluster.pools.empty()) {
    auto& list = Put(out, "pools", ListNode());
    for (const auto& pool : cluster.pools) list.children.push_back(PoolNode(pool));
  }
  if (cluster.topologies.size() == 1 && cluster.topologies[0].name.empty()) {
    Put(out, "topology", TextListNode(cluster.topologies[0].levels));
  } else if (!cluster.topologies.empty()) {
    auto& map = Put(out, "topology", MapNode());
    for (const auto& topology : cluster.topologies) {
      Put(map, topology.name, TextListNode(topology.levels));
    }
  }
}

Result<ClusterFile> DecodeCluster(std::string_view text) {
  auto decoded = DecodeSpec(text);
  if (!decoded.problems.HasErrors() && decoded.spec.cluster == ClusterFile{}) {
    decoded.problems.Error({}, "the file holds no pools and no topology", "`pools: [...]`");
  }
  if (decoded.problems.HasErrors()) return tl::unexpected(ToError(decoded.problems));
  return std::move(decoded.spec.cluster);
}

std::string EncodeCluster(const ClusterFile& cluster, TextFormat format) {
  auto out = MapNode();
  PutCluster(cluster, out);
  return WriteDocument(out, format);
}

}  // namespace muster::model

#include "sim/openb/trace.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "sim/trace/table.h"

namespace muster::sim {
namespace {

constexpr std::size_t kMostTypes = 63;               // one bit is left for models that no node has
constexpr std::int64_t kMostAmount = 1'000'000'000;  // a million cores, a petabyte

using Types = std::map<std::string, std::uint32_t, std::less<>>;

// Rows of amounts that are not negative.
class Amounts {
 public:
  static Result<Amounts> Make(const Table& table, std::array<const char*, 4> names,
                              std::size_t used) {
    Amounts amounts(table);
    for (std::size_t i = 0; i < used; ++i) {
      const auto column = table.Column(names[i]);
      if (!column) return tl::unexpected(column.error());
      amounts.columns_.push_back(*column);
    }
    return amounts;
  }

  Result<std::array<std::int64_t, 4>> Read(std::size_t row) const {
    std::array<std::int64_t, 4> values{};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto value = table_->Integer(row, columns_[i]);
      if (!value) return tl::unexpected(value.error());
      if (*value < 0 || *value > kMostAmount)
        return Fail(ErrorCode::kInvalid,
                    fmt::format("{}{} is {}: 0 to {} will do", table_->Where(row),
                                table_->head()[columns_[i]], *value, kMostAmount));
      values[i] = *value;
    }
    return values;
  }

 private:
  explicit Amounts(const Table& table) : table_(&table) {}

  const Table* table_;
  std::vector<std::size_t> columns_;
};

Result<void> ReadNodes(const std::string& path, const TraceFiles& files, OpenbTrace& trace,
                       Types& types) {
  const auto table = Table::Read(path, files);
  if (!table) return tl::unexpected(table.error());
  const auto amounts = Amounts::Make(*table, {"cpu_milli", "memory_mib", "gpu"}, 3);
  if (!amounts) return tl::unexpected(amounts.error());
  const auto model = table->Column("model");
  if (!model) return tl::unexpected(model.error());
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const auto values = amounts->Read(row);
    if (!values) return tl::unexpected(values.error());
    const auto [cpu, memory, gpus, unused] = *values;
    if (gpus > static_cast<std::int64_t>(kMostGpus))
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{}a node has at most {} GPUs here", table->Where(row), kMostGpus));
    const auto type =
        types.emplace(table->Text(row, *model), static_cast<std::uint32_t>(types.size()));
    if (types.size() > kMostTypes)
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{}more than {} GPU models", table->Where(row), kMostTypes));
    NodeState node;
    node.cpu_milli = cpu;
    node.memory_mib = memory;
    node.gpus = static_cast<std::uint32_t>(gpus);
    node.type = type.first->second;
    for (std::uint32_t i = 0; i < node.gpus; ++i) node.room[i] = kWholeGpu;
    trace.nodes.push_back(node);
  }
  return {};
}

std::uint64_t TypesOf(std::string_view spec, const Types& types) {
  if (spec.empty()) return ~0ULL;
  std::uint64_t bits = 1ULL << kMostTypes;  // never 0: the pod names something
  while (true) {
    const auto end = spec.find('|');
    if (const auto found = types.find(spec.substr(0, end)); found != types.end())
      bits |= 1ULL << found->second;
    if (end == std::string_view::npos) return bits;
    spec.remove_prefix(end + 1);
  }
}

Result<void> CheckGpus(const Table& table, std::size_t row, std::int64_t gpus, std::int64_t milli) {
  if (gpus > static_cast<std::int64_t>(kMostGpus))
    return Fail(ErrorCode::kInvalid, fmt::format("{}num_gpu is {}: a node has at most {} GPUs here",
                                                 table.Where(row), gpus, kMostGpus));
  if (gpus > 0 && (milli == 0 || milli > kWholeGpu))
    return Fail(ErrorCode::kInvalid, fmt::format("{}gpu_milli is {}: between 1 and {} of a GPU",
                                                 table.Where(row), milli, kWholeGpu));
  if (gpus > 1 && milli != kWholeGpu)
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}gpu_milli is {} for {} GPUs", table.Where(row), milli, gpus),
                fmt::format("a part is of one GPU; of several each is whole: {}", kWholeGpu));
  return {};
}

Result<void> ReadPods(const std::string& path, const TraceFiles& files, OpenbTrace& trace,
                      const Types& types) {
  const auto table = Table::Read(path, files);
  if (!table) return tl::unexpected(table.error());
  const auto amounts =
      Amounts::Make(*table, {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, 4);
  if (!amounts) return tl::unexpected(amounts.error());
  const auto spec = table->Column("gpu_spec");  // not in every file
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::uint64_t>,
           std::uint32_t>
      known;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const auto values = amounts->Read(row);
    if (!values) return tl::unexpected(values.error());
    const auto [cpu, memory, gpus, milli] = *values;
    if (auto sound = CheckGpus(*table, row, gpus, milli); !sound)
      return tl::unexpected(sound.error());
    PodShape pod{cpu, memory, static_cast<std::uint32_t>(gpus), gpus > 0 ? milli : 0, ~0ULL};
    if (spec && gpus > 0) pod.types = TypesOf(table->Text(row, *spec), types);
    const auto shape = known.emplace(std::tuple(cpu, memory, gpus, pod.gpu_milli, pod.types),
                                     static_cast<std::uint32_t>(trace.shapes.size()));
    if (shape.second) trace.shapes.push_back(pod);
    trace.pods.push_back(shape.first->second);
  }
  return {};
}

}  // namespace

Result<OpenbTrace> ReadOpenb(const std::string& nodes_path, const std::string& pods_path,
                             const TraceFiles& files) {
  OpenbTrace trace;
  Types types;
  if (const auto read = ReadNodes(nodes_path, files, trace, types); !read)
    return tl::unexpected(read.error());
  if (const auto read = ReadPods(pods_path, files, trace, types); !read)
    return tl::unexpected(read.error());
  if (trace.gpu_milli() == 0) return Fail(ErrorCode::kInvalid, nodes_path + ": no node has a GPU");
  bool asks = false;
  for (const PodShape& shape : trace.shapes) asks = asks || shape.gpus > 0;
  if (!asks) return Fail(ErrorCode::kInvalid, pods_path + ": no pod asks for a GPU");
  return trace;
}

}  // namespace muster::sim

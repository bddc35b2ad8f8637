#include "train/run/strategies/kind.h"

#include <fmt/format.h>

namespace muster::train {
namespace {

constexpr std::int64_t kMostShards = 4096;

}  // namespace

Wanted Count(std::string_view name, std::int64_t& into, std::int64_t most) {
  return {.name = name, .integer = &into, .least = 1, .most = static_cast<double>(most)};
}

Result<Grid> GridOf(const Settings& settings, const Cut& cut, int shards) {
  const auto micro = cut.micro > 0 ? cut.micro : (shards + cut.data - 1) / cut.data;
  if (cut.data * micro > kMostShards || cut.stages * cut.slices > kMostColumns) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("'{}': {} shards in {} columns", settings.text, cut.data * micro,
                            cut.stages * cut.slices),
                fmt::format("at most {} shards and {} columns", kMostShards, kMostColumns));
  }
  return Grid{.data = static_cast<int>(cut.data),
              .micro = static_cast<int>(micro),
              .stages = static_cast<int>(cut.stages),
              .slices = static_cast<int>(cut.slices)};
}

}  // namespace muster::train

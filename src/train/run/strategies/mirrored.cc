#include "train/run/strategies/mirrored.h"

#include <array>

namespace muster::train {
namespace {

constexpr std::int64_t kMostLanes = 64;

}  // namespace

Result<Strategy> MirroredStrategy::Read(const Settings& settings, int shards) const {
  std::int64_t lanes = 2;
  const std::array wanted{Count("lanes", lanes, kMostLanes)};
  if (auto read = ReadSettings(settings, wanted); !read) return tl::unexpected(read.error());
  const auto grid = GridOf(settings, {.data = shards}, shards);
  if (!grid) return tl::unexpected(grid.error());
  return Strategy{.grid = *grid, .lanes = static_cast<int>(lanes)};
}

}  // namespace muster::train

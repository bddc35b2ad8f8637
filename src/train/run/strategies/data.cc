#include "train/run/strategies/data.h"

namespace muster::train {

Result<Strategy> DataStrategy::Read(const Settings& settings, int shards) const {
  if (auto read = ReadSettings(settings, {}); !read) return tl::unexpected(read.error());
  const auto grid = GridOf(settings, {.data = shards}, shards);
  if (!grid) return tl::unexpected(grid.error());
  return Strategy{.grid = *grid};
}

}  // namespace muster::train

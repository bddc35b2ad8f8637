#include "train/run/strategies/pipeline.h"

#include <array>

namespace muster::train {

Result<Strategy> PipelineStrategy::Read(const Settings& settings, int shards) const {
  Cut cut;
  const std::array wanted{Count("stages", cut.stages), Count("micro", cut.micro)};
  if (auto read = ReadSettings(settings, wanted); !read) return tl::unexpected(read.error());
  const auto grid = GridOf(settings, cut, shards);
  if (!grid) return tl::unexpected(grid.error());
  return Strategy{.grid = *grid};
}

}  // namespace muster::train

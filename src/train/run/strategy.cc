#include "train/run/strategy.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "train/compute/settings.h"
#include "train/run/strategies/central.h"
#include "train/run/strategies/data.h"
#include "train/run/strategies/hybrid.h"
#include "train/run/strategies/mirrored.h"
#include "train/run/strategies/pipeline.h"
#include "train/run/strategies/server.h"
#include "train/run/strategies/tensor.h"

namespace muster::train {

Result<Strategy> ParseStrategy(std::string_view text, int shards) {
  const auto settings = ParseSettings(text);
  if (!settings) return tl::unexpected(settings.error());
  const DataStrategy data;
  const MirroredStrategy mirrored;
  const PipelineStrategy pipeline;
  const TensorStrategy tensor;
  const HybridStrategy hybrid;
  const ServerStrategy server;
  const CentralStrategy central;
  const std::array<const StrategyKind*, 7> kinds{&data,   &mirrored, &pipeline, &tensor,
                                                 &hybrid, &server,   &central};
  std::vector<std::string_view> examples;
  for (const auto* kind : kinds) {
    if (kind->word() == settings->word) return kind->Read(*settings, shards);
    examples.push_back(kind->example());
  }
  return Fail(ErrorCode::kInvalid, fmt::format("no strategy '{}'", settings->word),
              fmt::format("one of {}", fmt::join(examples, ", ")));
}

}  // namespace muster::train

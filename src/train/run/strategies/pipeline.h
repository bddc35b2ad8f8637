// `pipeline:stages=S[,micro=M]`: layers over workers.
//
// For models too large for one worker. They are cut where the dearest stage computes least
// (stage_cut.h); M shards stream through the stages, one forward and one back in turn (1F1B), so a
// stage waits for (S-1) of M+S-1 turns. Between two stages go the activation and its gradient of
// each shard.
#pragma once

#include <string_view>

#include "train/run/strategies/kind.h"

namespace muster::train {

class PipelineStrategy final : public StrategyKind {
 public:
  std::string_view word() const override { return "pipeline"; }
  std::string_view example() const override { return "pipeline:stages=2"; }
  Result<Strategy> Read(const Settings& settings, int shards) const override;
};

}  // namespace muster::train

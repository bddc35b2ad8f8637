// `tensor:slices=T[,micro=M]`: each layer over workers.
//
// For layers too large for one worker, and workers with fast links: heads and hidden units are cut
// into T slices. The model must have been made with so many. In each cut layer every slice sends
// its part of an activation to the others, forward and back, for every shard; those are summed over
// the same fixed tree as shards.
#pragma once

#include <string_view>

#include "train/run/strategies/kind.h"

namespace muster::train {

class TensorStrategy final : public StrategyKind {
 public:
  std::string_view word() const override { return "tensor"; }
  std::string_view example() const override { return "tensor:slices=2"; }
  Result<Strategy> Read(const Settings& settings, int shards) const override;
};

}  // namespace muster::train

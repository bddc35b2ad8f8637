// `hybrid:data=D,stages=S,slices=T[,micro=M]`: data, pipeline and tensor at once.
//
// D copies of a model that is cut into S stages of T slices: D x S x T cells. What goes between
// workers is what each of the three needs, inside its own dimension. Workers take cells in the
// order of stage, slice and shard, so that slices are near each other.
#pragma once

#include <string_view>

#include "train/run/strategies/kind.h"

namespace muster::train {

class HybridStrategy final : public StrategyKind {
 public:
  std::string_view word() const override { return "hybrid"; }
  std::string_view example() const override { return "hybrid:data=2,stages=2,slices=2"; }
  Result<Strategy> Read(const Settings& settings, int shards) const override;
};

}  // namespace muster::train

// `data`: shards of the batch over workers, with all-reduce.
//
// For models that fit into one worker, on any number of hosts: multi-worker mirrored. Every worker
// computes a run of shards with all parameters, owns a part of them, sums that part over all and
// hands out what it became. Each sends and receives a gradient and a set of parameters less its own
// part, the least there is.
#pragma once

#include <string_view>

#include "train/run/strategies/kind.h"

namespace muster::train {

class DataStrategy final : public StrategyKind {
 public:
  std::string_view word() const override { return "data"; }
  std::string_view example() const override { return "data"; }
  Result<Strategy> Read(const Settings& settings, int shards) const override;
};

}  // namespace muster::train

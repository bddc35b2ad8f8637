// `central`: variables on one host, replicas compute (central storage).
//
// One server owns all parameters and the optimiser's state; workers send it gradients and get
// parameters back. For workers with little memory of their own. The server moves n times what a
// worker does, so it is for few of them; more servers are `server:servers=N`.
#pragma once

#include <string_view>

#include "train/run/strategies/kind.h"

namespace muster::train {

class CentralStrategy final : public StrategyKind {
 public:
  std::string_view word() const override { return "central"; }
  std::string_view example() const override { return "central"; }
  Result<Strategy> Read(const Settings& settings, int shards) const override;
};

}  // namespace muster::train

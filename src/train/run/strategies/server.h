// `server[:servers=N][,mode=sync|async|bounded][,staleness=S][,round=R]`: parameter servers.
//
// Parameters are cut into N parts, one on each server; shards are computed by workers. `sync`: a
// step has the gradients of all shards, and the bits of any other strategy. `async`: no worker
// waits for another, each gradient is applied when it comes. `bounded`: the same, and no worker
// runs more than S shards ahead of the slowest. Asynchronous runs are replayed from their log
// (update_log.h). R steps lie between two boundaries, where workers come and go and state is
// mirrored.
#pragma once

#include <string_view>

#include "train/run/strategies/kind.h"

namespace muster::train {

class ServerStrategy final : public StrategyKind {
 public:
  std::string_view word() const override { return "server"; }
  std::string_view example() const override { return "server:servers=2,mode=async"; }
  Result<Strategy> Read(const Settings& settings, int shards) const override;
};

}  // namespace muster::train

// `mirrored[:lanes=N]`: as `data`, with so many shards at once in each process.
//
// For one machine: lanes are threads of a process, each with buffers of its own, which read the
// same parameters. They sum up in memory, so less goes between processes than with a worker for
// each. Built-in models compute in all lanes at once. Torch computes one shard at a time, on the
// one device of the process: there lanes give the same bits and no speed.
#pragma once

#include <string_view>

#include "train/run/strategies/kind.h"

namespace muster::train {

class MirroredStrategy final : public StrategyKind {
 public:
  std::string_view word() const override { return "mirrored"; }
  std::string_view example() const override { return "mirrored:lanes=2"; }
  Result<Strategy> Read(const Settings& settings, int shards) const override;
};

}  // namespace muster::train

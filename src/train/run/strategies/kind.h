// StrategyKind: one word of `--strategy`: which settings it takes, and how it cuts a run.
//
// Each strategy is a small file pair behind this interface and says in its header what it is good
// for, what it assumes and what goes between workers. What it comes to is a Strategy, plain values:
// layout.h divides its cells among whoever is there, view_work.h and async_work.h carry it out. So
// a new one is a new shape of the grid, or another choice of who owns parameters, and no new code
// of steps.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "train/compute/settings.h"
#include "train/run/strategy.h"

namespace muster::train {

class StrategyKind {
 public:
  virtual ~StrategyKind() = default;
  virtual std::string_view word() const = 0;
  virtual std::string_view example() const = 0;  // with settings
  // `shards` of a step, where the settings do not say how many there are.
  virtual Result<Strategy> Read(const Settings& settings, int shards) const = 0;
};

constexpr std::int64_t kMostColumns = 1024;

// A setting that is a whole number from 1 on.
Wanted Count(std::string_view name, std::int64_t& into, std::int64_t most = kMostColumns);

// The grid of a run that is cut like this. `micro`: shards of a cell; 0: as many as it takes for
// all `shards`.
struct Cut {
  std::int64_t data = 1, micro = 0, stages = 1, slices = 1;
};
Result<Grid> GridOf(const Settings& settings, const Cut& cut, int shards);

}  // namespace muster::train

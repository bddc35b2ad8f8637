// Transfer: who hands what to whom when the workers change.
//
// A pure function of the new view, its layout and of what each worker says it holds, so all compute
// the same plan and nothing has to be agreed on. Who computes a column needs all its parameters;
// who owns or mirrors a part needs its state, and its parameters too. What it has it keeps; of
// several others who have a thing, one on its own host hands it over, else the first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "train/members/view.h"
#include "train/run/extent.h"
#include "train/run/layout.h"

namespace muster::train {

using Buckets = std::vector<Extent>;

struct Move {
  int from = 0;  // ranks: members, then those who leave
  int to = 0;
  Holding source;  // what it is cut from; of `from`
  Holding target;  // what it becomes a piece of
  std::size_t bucket = 0;
  Extent extent;  // of the parameters of the column
  friend bool operator==(const Move&, const Move&) = default;
};

// What a member holds when the view is installed, of its step.
std::vector<Holding> NeededBy(int rank, const Layout& layout, std::int64_t step);

// `buckets`: by column. None: something that is needed is held by nobody.
std::optional<std::vector<Move>> PlanTransfer(const View& view, const Layout& layout,
                                              const Holdings& holdings,
                                              std::span<const Buckets> buckets);

// Whether these workers together have all of the state after the step.
bool Recoverable(const Holdings& holdings, std::int64_t step, std::span<const Buckets> buckets);

}  // namespace muster::train

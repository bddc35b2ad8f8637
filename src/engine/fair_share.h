// Fair share: one amount of one resource, divided among sibling queues.
//
// First everybody gets min(quota, what it can use), even where the quotas together exceed the
// amount. What is left goes by priority band, highest first, inside a band by weight among the
// still hungry; a queue that stays hungry gets whole units only; repeated while somebody took less
// than offered. The cut-off fractions that remain are given out one unit each, largest cut-off
// first, then the older queue, band by band. Pure integers; O(n log n) per round, at most n rounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/wide.h"

namespace muster::engine {

struct ShareClaim {
  std::int64_t quota = 0;    // kUnlimited: the whole amount
  std::int64_t limit = 0;    // kUnlimited: none
  std::int64_t weight = 0;   // relative
  std::int64_t request = 0;  // all that it could use
  std::int64_t priority = 0;
  std::int64_t created_order = 0;
  std::int64_t share = 0;  // in: already given; out: the share
};

// Keeps its working memory between calls; holds no other state.
class ShareDivider {
 public:
  // Divides `total` in place and returns what nobody took. `unit` is the indivisible amount.
  std::int64_t Divide(std::int64_t total, std::int64_t unit, std::span<ShareClaim> claims);
  // Only the second half: `total` is what is over, `share` what each has so far.
  std::int64_t DivideOver(std::int64_t total, std::int64_t unit, std::span<ShareClaim> claims);

 private:
  using Band = std::span<const std::uint32_t>;
  std::int64_t DivideBand(std::int64_t total, std::int64_t unit, std::span<ShareClaim> claims,
                          Band band);
  std::int64_t HandOutCutOffs(std::int64_t total, std::int64_t unit, std::span<ShareClaim> claims,
                              Band band);

  std::vector<std::uint32_t> order_;   // claims by priority, the bands one behind the other
  std::vector<std::uint32_t> hungry_;  // working memory of HandOutCutOffs
  std::vector<Wide> cut_off_;          // by claim: what its last round cut off, times the weights
};

}  // namespace muster::engine

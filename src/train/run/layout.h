// Layout: which worker of a view computes, owns and mirrors what.
//
// A pure function of the strategy and the view. The cells of the grid, in the order of stage, slice
// and shard, are cut into runs, one for each worker, so that a column is computed by few. Each
// column has parameters of its own, cut into as many parts as it has owners: those who compute it,
// or servers. The next workers in an order in which hosts take turns mirror a part, whatever they
// compute, so that a column with one owner survives its death, and a job that of a host where hosts
// have about as many workers each.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "train/exact/shard_tree.h"
#include "train/members/view.h"
#include "train/run/strategy.h"

namespace muster::train {

struct ColumnLayout {
  std::vector<int> computers;    // ranks, in the order of their shards
  std::vector<ShardRange> runs;  // of shards, none empty; by computer
  std::vector<int> owners;       // ranks, by part

  int parts() const { return static_cast<int>(owners.size()); }
  std::optional<ShardRange> RunOf(int rank) const;
  bool Computes(int rank) const { return RunOf(rank).has_value(); }
  int ComputerOf(int shard) const;
};

struct Layout {
  int members = 0;
  int mirrors = 0;
  std::vector<ColumnLayout> columns;
  std::vector<int> hosts;  // by rank: the first rank that it shares memory with
  std::vector<int> ring;   // all ranks; the next ones mirror

  const ColumnLayout& At(int column) const { return columns[static_cast<std::size_t>(column)]; }
  // Ranks that mirror what this one owns, the nearest first.
  std::vector<int> MirrorsOf(int rank) const;
  // Parts of a column that a rank holds: its own, then those it mirrors.
  std::vector<int> PartsAt(int column, int rank) const;
};

Layout LayoutFor(const Strategy& strategy, const View& view, int mirrors);

// What the lanes of a worker compute of its run; none is empty.
std::vector<ShardRange> LaneRuns(ShardRange run, int lanes);

}  // namespace muster::train

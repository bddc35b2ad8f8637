// Strategy: how a run is cut, and who keeps the parameters.
//
// A run is cut once and for all into a grid of cells: shards of the batch, stages of the layers,
// slices inside of layers. A cell has `micro` shards, which stream through the stages one after the
// other. Workers share the cells among them, however many there are, so the bits of a result depend
// on the grid alone. Each strategy (run/strategies, a file pair each) is a shape of the grid, or
// another choice of those who own the parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace muster::train {

struct Grid {
  int data = 8;   // cells of a column
  int micro = 1;  // shards of a cell
  int stages = 1;
  int slices = 1;

  int shards() const { return data * micro; }
  int columns() const { return stages * slices; }  // a column: all shards of a stage and a slice
  int cells() const { return data * columns(); }
  int Column(int stage, int slice) const { return stage * slices + slice; }
};

enum class Mode {
  kSynchronous,   // a step has the gradients of all shards, of the same parameters
  kAsynchronous,  // each gradient is applied by itself when it comes
  kBounded,       // the same, and no worker runs far ahead of the slowest
};

struct Strategy {
  Grid grid;
  int servers = 0;  // owners of the parameters, beside those who compute; 0: those who compute
  int lanes = 1;    // cells that a worker computes at the same time
  Mode mode = Mode::kSynchronous;
  std::int64_t staleness = 0;  // shards that a worker may be ahead of the slowest, when bounded
  std::int64_t round = 1;      // steps between two boundaries, where not synchronous; odd
};

// A word of run/strategies and its settings: "hybrid:data=2,stages=2,slices=2". `shards` of a step,
// where the text does not say how many there are.
Result<Strategy> ParseStrategy(std::string_view text, int shards);

}  // namespace muster::train

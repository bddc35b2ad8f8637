// ViewWork: the steps of one worker in one view: it computes its cells, and exchanges gradients.
//
// Each column that the worker computes is a strand of its own (one for each lane), which takes its
// shards forward and back in the order 1F1B: so many forward ahead as there are stages behind, then
// one back for each one forward. The order is the same whoever has the cells, and each strand has a
// part of it, so no two ever wait for each other in a circle. One strand alone needs no thread.
// Where the batch adapts, a step takes as many batches one after the other as the chief said at the
// end of the one before, and their mean gradient is exchanged once; the first of a view takes one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/run/arena.h"
#include "train/run/audit.h"
#include "train/run/batch_plan.h"
#include "train/run/column_work.h"
#include "train/run/courier.h"
#include "train/run/device_group.h"
#include "train/run/exchange.h"
#include "train/run/layout.h"
#include "train/run/numbers.h"
#include "train/run/state.h"
#include "train/run/strategy.h"
#include "train/run/way.h"

namespace muster::train {

using ColumnWorks = std::vector<std::unique_ptr<ColumnWork>>;

// How gradients are summed.
struct SumOptions {
  bool exact = true;
  bool half = false;       // as 16 bits on the way
  BatchSpec batches = {};  // of a step; several only where not exact
};

// Bytes for the gradients that a worker may have to hold at once, however many workers there are.
std::size_t GradientBytes(const Strategy& strategy, const SumOptions& sums,
                          std::span<const std::size_t> column_floats);

class ViewWork {
 public:
  // All must outlive it.
  struct Parts {
    const Workload& workload;
    const ColumnWorks& columns;
    const Strategy& strategy;
    SumOptions sums;
    const Layout& layout;
    TrainState& state;
    Fabric& fabric;
    Arena& arena;
    Audit* audit;  // or null
    Clock& clock;
    std::int64_t measure_every;     // steps whose gradients' norms are taken; 0: none
    std::int64_t steps;             // of the run
    DeviceSum* device;              // null: gradients are summed up here
    std::optional<CostModel> cost;  // of links, where there are ways to choose from
  };
  explicit ViewWork(const Parts& parts);
  ~ViewWork();

  // One more step. `word` is asked at its end: all stop if anybody says so; whether there is a
  // checkpoint the chief says.
  Result<StepNumbers> Step(const AskWord& word);
  // There are no more steps here: waits until nothing is on its way from the memory of this one.
  // Who ends without it breaks off the view.
  Result<void> Finish();

 private:
  struct Strand;

  void AddColumn(int column);
  UpdateStep NextStep() const;
  bool RunStrand(Strand& strand, const UpdateStep& step);
  bool RunOnDevice(Strand& strand, const UpdateStep& step);
  bool Backward(Strand& strand, std::size_t index, const UpdateStep& step);
  bool Measured(const UpdateStep& step) const;

  Parts parts_;
  Courier courier_;
  Numbers numbers_;
  NextBatch next_;                     // as the chief said
  std::vector<ShardResult> measured_;  // all shards of the step before, where it was measured
  std::int64_t measured_batches_ = 1;
  bool finished_ = false;
  bool summed_ = false;  // the next step is, on the devices
  std::vector<std::unique_ptr<Strand>> strands_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;  // they end first: they read the strands'
  std::unique_ptr<DeviceGroup> group_;
};

}  // namespace muster::train

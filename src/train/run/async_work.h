// AsyncWork: the rounds of one worker in one view, where gradients are not waited for.
//
// A round is so many steps. Inside it workers take units (a shard of a step) as they are free, pull
// whatever parameters there are, and push gradients; each owner applies each to its part when it
// comes. At the end of a round all is still: the owners write their logs, hand the parameters to
// all who compute and the state to the mirrors, and everybody has the state after the same step, as
// with a synchronous one. Joins, leaves and checkpoints happen there. A view that breaks off in a
// round goes on in the next view with what was applied, if all owners of parts are still there, and
// else from the beginning of the round.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/run/arena.h"
#include "train/run/layout.h"
#include "train/run/live_round.h"
#include "train/run/numbers.h"
#include "train/run/part_server.h"
#include "train/run/state.h"
#include "train/run/strategy.h"
#include "train/run/workload.h"

namespace muster::train {

// More memory that peers can read, for copies that owners hand to workers.
std::size_t AsyncBytes(const Strategy& strategy, std::size_t floats);

class AsyncWork {
 public:
  // All must outlive it.
  struct Parts {
    Workload& workload;
    const Strategy& strategy;
    const Layout& layout;
    TrainState& state;
    Fabric& fabric;
    Arena& arena;
    LiveRound& live;  // of this worker, from view to view
    std::uint64_t generation;
    std::int64_t steps;             // of the run
    const std::string& update_log;  // the folder; empty: none is written
  };
  explicit AsyncWork(const Parts& parts);
  ~AsyncWork();

  // One more round. `word` is asked at its end, as by ViewWork. An error of the
  // code kInvalid: the log cannot be written, and there is no use in trying again.
  Result<StepNumbers> Step(const AskWord& word);
  // As of ViewWork.
  Result<void> Finish();

 private:
  PartCut CutOf(int part) const;
  std::int64_t Units() const { return (to_ - from_) * parts_.strategy.grid.shards(); }
  Result<std::vector<std::uint8_t>> Agree();
  void BeginAnew();
  Result<void> Run(ShardResult& mine);
  Result<void> Work(PartServer* here, ShardResult& mine);
  Result<void> Publish();
  Result<void> Gather();
  void HandOut(int peer, bool with_state);

  Parts parts_;
  const ColumnLayout& at_;
  ColumnState& column_;
  std::optional<PartCut> own_;
  Numbers numbers_;
  bool finished_ = false;
  std::int64_t from_ = 0, to_ = 0;  // the round
  std::vector<Offers> handed_;      // at the end of it
};

}  // namespace muster::train

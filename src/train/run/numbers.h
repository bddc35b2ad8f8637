// Numbers: what each worker tells all others at the end of a step: losses, who wants a change, how
// far it is with the checkpoint before, and the chief's word, whether a checkpoint is written and
// how large the next step is.
//
// Who has heard all knows that every worker has begun the step, so that the one before it is
// complete everywhere. All hear the same, so all write a checkpoint of this step or nobody does.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/run/batch_plan.h"
#include "train/run/layout.h"
#include "train/run/workload.h"

namespace muster::train {

struct StepNumbers {
  std::vector<ShardResult> shards;  // all of them; sums over the batches of the step
  bool stop = false;                // somebody says: after this step
  bool checkpoint = false;          // of this step: the chief says so, and nobody is busy
  bool busy = false;                // somebody still writes one
  std::int64_t unwritten = -1;      // the newest that somebody has yet to write, or could not
  NextBatch next = {};              // the chief says: of the step after it
  bool joined = true;               // everybody is in the group of devices
  double square_before = 0;     // of the whole gradient of the step before, where it is measured
  std::int64_t compute_ns = 0;  // of this worker, without what it waited for afterwards
  // Of the step before, where that was measured: its shards, and how many batches it had.
  std::vector<ShardResult> measured = {};
  std::int64_t measured_batches = 1;
};

// What a worker itself says.
struct Word {
  bool stop = false;
  bool checkpoint = false;
  bool busy = false;            // with a checkpoint
  std::int64_t unwritten = -1;  // the step of one that it has yet to write, or could not
  NextBatch next = {};
  bool joined = false;       // it is in the group of devices
  double square_before = 0;  // of the parts that it owns
};

// Asked at the end of a step; `completed`: steps that are done by then.
using AskWord = std::function<Word(std::int64_t completed)>;

class Numbers {
 public:
  // `at`: the column whose computers know the losses.
  Numbers(Fabric& fabric, int members, const ColumnLayout& at)
      : fabric_(fabric), members_(members), at_(at) {}

  // `mine`: of the shards of this worker, in their order.
  Result<StepNumbers> Swap(std::int64_t completed, const std::vector<ShardResult>& mine,
                           const Word& word);
  // Waits until all have what was told last. Before, this must not go unless the fabric is aborted:
  // it may be on its way from here.
  Result<void> Finish();

 private:
  Fabric& fabric_;
  int members_;
  const ColumnLayout& at_;
  // What was told of a step lies here until all have finished it, which they have when the one
  // after the next begins.
  std::array<std::vector<double>, 2> rows_;
  std::int64_t told_ = -1;  // the step before, if any
};

}  // namespace muster::train

// Train: one worker of a job, from the moment it starts to the last step.
//
// Joins the others, takes over its share of the state, works step by step, and does it all again
// whenever somebody comes, goes or is lost. The parameters after each step are those of a run of
// one worker, whatever happened. Returns when the last step is done, when this worker was asked to
// leave, or when it cannot go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "train/exact/shard_tree.h"
#include "train/members/store.h"
#include "train/mesh/mesh.h"
#include "train/run/batch_plan.h"
#include "train/run/strategy.h"
#include "train/run/workload.h"

namespace muster::train {

struct TrainOptions {
  MeshOptions mesh;  // its memory is seen to
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  Strategy strategy;    // the same for all workers; more workers than cells are of no use
  bool server = false;  // this one keeps parameters, where the strategy has servers
  bool exact = true;
  bool half = false;      // gradients to 16 bits on the way, with error feedback; not where exact
  int mirrors = 1;        // peers that hold a copy of each part of the optimiser's state
  int min_workers = 1;    // fewer wait for others
  int first_workers = 1;  // so many must be there before work begins; then min_workers counts
  std::size_t bucket_floats = std::size_t{1} << 20U;
  std::string checkpoints;            // a folder that all workers see; empty: none are written
  std::int64_t checkpoint_every = 0;  // steps; 0: only when all leave
  std::string audit;                  // a file: see audit.h; empty: none is written
  std::string update_log;  // a folder for asynchronous updates (run/update_log.h); or none
  bool collect = false;    // at the end each worker gets all columns; alike for all
  // Grows when a checkpoint is asked for; the chief's counts. Null: nobody asks.
  const std::atomic<std::int64_t>* checkpoints_asked = nullptr;
  std::int64_t noise_every = 10;  // steps between those whose gradients are measured; 0: none is
  BatchSpec batches;  // that a step may take; all else counts in single ones. Not where exact
};

// What a worker computes of a column.
struct ColumnReport {
  int column = 0;
  ShardRange shards;
  std::span<const float> parameters;
};

struct StepReport {
  std::int64_t step = 0;  // steps that are done
  int workers = 0;        // all members, servers too
  int servers = 0;        // of them
  int rank = 0;
  std::uint64_t generation = 0;
  double loss = 0;  // mean over the samples of the step
  std::int64_t samples = 0;
  std::int64_t batches = 1;  // that one step took; `step` counts them singly
  std::vector<ColumnReport> columns = {};
  std::int64_t compute_ns = 0;             // of this worker
  std::optional<double> noise_scale = {};  // of the gradient, in samples; where it is known
};

// A change of the gang, as this worker saw it.
struct ResizeReport {
  std::uint64_t generation = 0;
  std::int64_t step = 0;
  int workers = 0;
  bool planned = false;
  std::int64_t pause_ns = 0;  // from the end of one step to the beginning of the next
  int rank = 0;
  int servers = 0;      // of the workers
  bool speaks = false;  // for all
};

// A member of the view is lost, as this worker sees it.
struct LostReport {
  LostHow how = LostHow::kClosed;
};

// A checkpoint is complete, on the disk of all; or this worker could not write its part of it. Work
// goes on.
struct CheckpointReport {
  std::int64_t step = 0;
  Result<void> written;
  bool speaks = false;  // this worker is to tell others of it: one of those who know
};

struct TrainEvents {
  std::function<void(const StepReport&)> stepped;
  std::function<void(const ResizeReport&)> resized;
  std::function<void(const LostReport&)> lost;                // from a thread of the mesh
  std::function<void(const CheckpointReport&)> checkpointed;  // from any thread
  // The parameters after the last step, by column; with `collect`.
  std::function<void(const std::vector<std::vector<float>>&)> collected;
  // The same, for one worker alone, to put them where they stay. The job is finished only when it
  // has returned; an error is that of this worker, and another one is asked. So it may be called
  // more than once in a job.
  std::function<Result<void>(const std::vector<std::vector<float>>&)> keep;
};

enum class TrainEnd {
  kFinished,
  kLeft,        // the others go on, or it never was with them
  kPaused,      // all have left, each with what it could write of the state
  kLeftBehind,  // by the others; never seen outside, because the worker joins them again
};

// `leave` becomes true when this worker shall leave at the next boundary.
Result<TrainEnd> Train(Workload& workload, Store& store, Clock& clock, const TrainOptions& options,
                       const TrainEvents& events, const std::atomic<bool>& leave);

}  // namespace muster::train

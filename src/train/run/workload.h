// Workload: what is trained, as the runtime sees it: gradients of shards and an update by element.
//
// The runtime owns the parameters as one flat list of floats and asks for the gradient of one shard
// of one step at a time. The answer may depend on the parameters, the step and the shard alone;
// then the result of a run depends on the seed alone. A built-in model, a torch module or a test
// are each a Workload. One that can be cut into stages and slices says what a column of those
// computes (column_work.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/run/extent.h"

namespace muster::train {

class ColumnWork;
class DeviceSum;

// While a shard is computed. Each call may wait; false: break off, the step will not count.
class ShardProgress {
 public:
  virtual ~ShardProgress() = default;
  // These parameters are about to be read.
  virtual bool Need(Extent parameters) = 0;
  // The gradient from here to the end is as it will stay.
  virtual bool Ready(std::size_t first) = 0;
  // All shards of a step are computed from the same parameters: a copy of them may be kept.
  virtual bool SameInStep() const { return true; }
};

struct ShardResult {
  double loss = 0;  // summed over the samples of the shard
  std::int64_t samples = 0;
  double square = 0;  // of its gradient, in steps that are measured; see noise_scale.h
};

// One update. It stands for `batches` steps, of which the first is the one after `completed`: the
// gradient is the mean over them, the learning rate is multiplied by `rate`.
struct UpdateStep {
  std::int64_t completed = 0;
  std::int64_t batches = 1;
  double rate = 1;

  std::int64_t last() const { return completed + batches; }  // the first of the run is 1
  std::int64_t middle() const { return completed + (batches + 1) / 2; }
};

// A stage of the layers, a slice of each.
struct Cut {
  int stages = 1, stage = 0;
  int slices = 1, slice = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;
  // What is computed, but for the seed and the cut of a step: model, data, batch, optimiser, rate.
  // As terms (terms.h): workers and checkpoints of which they differ do not belong together.
  virtual std::string Describe() const = 0;
  // What it is computed with, as terms too: the last bits depend on it, and nothing else.
  virtual std::string ComputedWith() const = 0;
  virtual std::vector<std::size_t> LayerFloats() const = 0;  // together all parameters
  virtual void Start(std::uint64_t seed, std::span<float> parameters) const = 0;
  // Writes all of the gradient, unless it is told to break off. Different shards may come from
  // different threads at once (lanes); what is not made for that locks.
  virtual ShardResult Compute(std::int64_t step, int shard, std::span<const float> parameters,
                              std::span<float> gradient, ShardProgress& progress) = 0;

  // Floats that the optimiser keeps for each parameter.
  virtual int StateFloats() const = 0;
  // The update of a run of parameters. State lies in planes: all first floats, all second ones.
  virtual void Update(const UpdateStep& step, std::span<const float> gradient,
                      std::span<const float> parameters, std::span<const float> state,
                      std::span<float> new_parameters, std::span<float> new_state) const = 0;

  // For the audit: samples of an epoch, and which of them a shard takes; 0: it cannot say. From any
  // thread.
  virtual std::uint64_t EpochSamples() const { return 0; }
  virtual std::vector<std::uint64_t> SamplesOf(std::int64_t /*step*/, int /*shard*/) const {
    return {};
  }

  // Where gradients can be summed up on devices; null: they cannot.
  virtual DeviceSum* device_sum() { return nullptr; }

  // The whole as one column by Compute; an error: it cannot be cut like this.
  virtual Result<std::unique_ptr<ColumnWork>> Column(const Cut& cut);
};

}  // namespace muster::train

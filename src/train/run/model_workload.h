// ModelWorkload: a built-in model on a data set, as a Workload.
//
// A step takes the next `batch` samples in the order that the seed gives, and its shards take them
// in runs of about equal length; so which samples a step sees depends on the step alone. Gradients
// become final layer by layer, from the last to the first. Stages are runs of about equally many
// layers; slices are those that the model is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/compute/loss.h"
#include "train/compute/model.h"
#include "train/compute/optimizer.h"
#include "train/compute/rate.h"
#include "train/data/dataset.h"
#include "train/run/strategy.h"
#include "train/run/workload.h"

namespace muster::train {

struct ModelRun {
  std::string model = "mlp:64,64,10";
  std::string data = "digits";
  std::string optimizer = "adam";
  std::string rate = "constant:rate=0.003";
  std::string kernels = "auto";
  std::size_t batch = 64;  // samples of a step
  int shards = 8;
  std::uint64_t seed = 1;
};

class ModelWorkload final : public Workload {
 public:
  static Result<std::unique_ptr<ModelWorkload>> Open(const ModelRun& run);

  std::string Describe() const override;
  std::string ComputedWith() const override;
  std::vector<std::size_t> LayerFloats() const override;
  void Start(std::uint64_t seed, std::span<float> parameters) const override;
  ShardResult Compute(std::int64_t step, int shard, std::span<const float> parameters,
                      std::span<float> gradient, ShardProgress& progress) override;
  int StateFloats() const override { return static_cast<int>(optimizer_.StateFloats()); }
  void Update(const UpdateStep& step, std::span<const float> gradient,
              std::span<const float> parameters, std::span<const float> state,
              std::span<float> new_parameters, std::span<float> new_state) const override;

  Result<std::unique_ptr<ColumnWork>> Column(const Cut& cut) override;

  // The parameters of the model, from those of all columns of a grid.
  std::vector<float> Join(const Grid& grid, const std::vector<std::vector<float>>& columns) const;

  // Samples of a shard of a step, in their order.
  std::vector<std::uint64_t> SamplesOf(std::int64_t step, int shard) const override;
  std::uint64_t EpochSamples() const override { return data_.train->size(); }
  const Dataset& train() const { return *data_.train; }
  const Model& model() const { return model_; }
  // The mean over the batch, for outputs of some of its samples.
  Loss LossFor(const Matrix& output, const Matrix& targets) const;

  struct Score {
    double loss = 0;
    bool classes = false;
    double correct = 0;  // share, of classes
    std::size_t samples = 0;
  };
  // On samples that were kept apart.
  Score Test(std::span<const float> parameters) const;

 private:
  ModelWorkload(const ModelRun& run, const ModelSpec& spec, const Kernels& kernels,
                const OptimizerSpec& optimizer, const RateSpec& rate, TrainAndTest data);

  ModelRun run_;
  const Kernels& kernels_;
  Model model_;
  Optimizer optimizer_;
  RateSpec rate_;
  TrainAndTest data_;
};

}  // namespace muster::train

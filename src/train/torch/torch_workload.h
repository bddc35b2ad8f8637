// TorchWorkload: any torch module with a loss and data, as a Workload.
//
// The runtime keeps parameters and the optimiser. On the CPU the module's parameters are views of
// the runtime's floats; on a GPU they are copied in once a step, and gradients come out in pieces
// while earlier layers are still at work. torch is held to deterministic algorithms, one number of
// threads, and a seed drawn from step and shard, so a shard has the same bits whoever computes it
// on a machine of the same kind. Module and random numbers are one of each in a process, so shards
// of several threads are computed in turn; none waits for another. Buffers of a module are not
// handed over: training must not change them. No c10d: workers talk over the runtime's own mesh.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/compute/optimizer.h"
#include "train/compute/rate.h"
#include "train/run/workload.h"

namespace muster::train {

struct TorchBatch {
  torch::Tensor inputs, targets;
  std::int64_t samples = 0;
};

// Callbacks may throw what torch throws. They are called from several threads, one at a time.
struct TorchJob {
  // On the CPU, all parameters float32, with random numbers of torch alone.
  std::function<std::shared_ptr<torch::nn::Module>()> make;
  // Summed over the samples of the batch, which lies where the module does.
  std::function<torch::Tensor(torch::nn::Module&, const TorchBatch&)> loss;
  std::function<TorchBatch(std::int64_t step, int shard)> data;  // on the CPU
  std::size_t batch = 0;                                         // samples of a step
  // For an audit: how many samples an epoch has, and which of them `data` takes, by number. Without
  // both there is none.
  std::uint64_t epoch_samples = 0;
  std::function<std::vector<std::uint64_t>(std::int64_t step, int shard)> samples = {};
  // What these are, as terms (members/terms.h): "model conv:digits; data digits; ...". Workers and
  // checkpoints of another model or other data are known by them, and by nothing else.
  std::string terms = {};
};

struct TorchOptions {
  std::string device = "cpu";         // or "cuda"
  std::string precision = "float32";  // of products: or "bfloat16", or on a GPU "float16"
  // Losses times this, gradients divided by it: a power of two, so that nothing is rounded. Small
  // gradients would vanish in float16. It never changes: a scale that adapts is state that depends
  // on what overflowed before. A gradient that overflows leaves its parameter as it is.
  double loss_scale = 1;
  int threads = 1;
  // Of gradients on GPUs in fast mode: "nccl", "mesh" (the runtime's own), or "auto": NCCL where
  // each worker has a GPU of its own and this was built with it.
  std::string sum = "auto";
  std::string optimizer = "adam";
  std::string rate = "constant:rate=0.003";
  std::string kernels = "auto";  // of the optimiser
  std::uint64_t seed = 1;
};

class TorchWorkload final : public Workload {
 public:
  // Tries the first shard, so that what does not work is said here.
  static Result<std::unique_ptr<TorchWorkload>> Open(TorchJob job, const TorchOptions& options);
  ~TorchWorkload() override;

  std::string Describe() const override;
  std::string ComputedWith() const override;
  std::vector<std::size_t> LayerFloats() const override;  // of each tensor, as registered
  void Start(std::uint64_t seed, std::span<float> parameters) const override;
  ShardResult Compute(std::int64_t step, int shard, std::span<const float> parameters,
                      std::span<float> gradient, ShardProgress& progress) override;
  int StateFloats() const override { return static_cast<int>(optimizer_.StateFloats()); }
  void Update(const UpdateStep& step, std::span<const float> gradient,
              std::span<const float> parameters, std::span<const float> state,
              std::span<float> new_parameters, std::span<float> new_state) const override;

  std::uint64_t EpochSamples() const override { return job_.samples ? job_.epoch_samples : 0; }
  std::vector<std::uint64_t> SamplesOf(std::int64_t step, int shard) const override;

  DeviceSum* device_sum() override;

  // The module with these parameters, which must stay where they are while it is used, and while
  // nobody asks for shards; and a batch where the module is.
  torch::nn::Module& With(std::span<const float> parameters);
  TorchBatch Here(const TorchBatch& batch) const;
  // "torch 2.11.0, cuda; 1234 MiB of its memory at most".
  std::string Used() const;

 private:
  class Gradients;
  class OnDevice;

  TorchWorkload(TorchJob job, const TorchOptions& options, const Kernels& kernels,
                const OptimizerSpec& optimizer, const RateSpec& rate);
  Result<void> Prepare();
  Result<void> Try();
  Result<void> TrySamples(std::int64_t taken) const;
  void Load(std::span<const float> parameters);
  torch::Tensor Forward(const TorchBatch& batch);
  ShardResult Run(std::int64_t step, int shard, std::span<const float> parameters);

  mutable std::mutex mutex_;  // over what torch does, and the callbacks
  TorchJob job_;
  TorchOptions options_;
  torch::Device device_;
  Optimizer optimizer_;
  RateSpec rate_;
  std::shared_ptr<torch::nn::Module> module_;
  std::vector<torch::Tensor> parameters_;  // of the module
  std::vector<std::size_t> offsets_;       // of each in the flat list, and the end
  torch::Tensor copy_;                     // of all parameters, on a GPU
  std::int64_t copied_step_ = -1;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<OnDevice> on_device_;
};

}  // namespace muster::train

// NoiseScale: how much the gradients of samples differ, from those of shards and of their sum.
//
// The scale is the trace of the covariance of a sample's gradient over the square of the mean
// gradient: the number of samples at which both are equal. Below it a larger batch saves almost as
// many steps as it adds samples; far above it, none (McCandlish and others, 2018). One step tells
// little, so both parts are averaged over steps, apart from each other. Costs a square norm of what
// is there anyway for each shard.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace muster::train {

// A shard as it goes into the sum: its gradient is divided by the samples of the whole batch. Of a
// step that takes several batches, both are sums over the shard's part of each.
struct ShardNorm {
  std::int64_t samples = 0;
  double square = 0;  // of the norm
};

// The same bits whatever the memory; sums are in double.
double SquareNorm(std::span<const float> values);

struct NoiseScale {
  double signal = 0;  // square of the mean gradient
  double noise = 0;   // trace of the covariance
  std::int64_t steps = 0;

  // `total_square`: of the sum over the shards, which is the gradient of the batch; with several
  // `batches` in the step, of their mean. Nothing is learnt from less than two shards that have
  // samples. `kept`: of the average, at each step, once there are enough for it: until then all
  // count alike.
  void Add(std::span<const ShardNorm> shards, double total_square, std::int64_t batches = 1,
           double kept = 0.95);

  // In samples; none before there are steps, or while noise hides the signal.
  std::optional<double> value() const;
};

}  // namespace muster::train

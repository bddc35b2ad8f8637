#include "train/compute/noise_scale.h"

#include <algorithm>
#include <cstddef>

namespace muster::train {

// Eight sums side by side: one alone would wait for itself at every addition.
double SquareNorm(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i + lane < values.size(); ++lane) {
    const auto value = static_cast<double>(values[i + lane]);
    lanes[lane] += value * value;
  }
  double out = 0;
  for (const double lane : lanes) out += lane;
  return out;
}

// A batch of b samples has a gradient whose square is, on the average, signal + noise / b. Shards
// are such batches, and so is their sum: two equations. With shards of different sizes, 1 / b is
// the mean over them.
void NoiseScale::Add(std::span<const ShardNorm> shards, double total_square, std::int64_t batches,
                     double kept) {
  const auto count = static_cast<double>(batches);
  double batch = 0;  // all samples of the step
  for (const auto& shard : shards) batch += static_cast<double>(shard.samples);
  double small_square = 0, small_inverse = 0;
  int counted = 0;
  for (const auto& shard : shards) {
    if (shard.samples == 0) continue;
    const double whole = batch / static_cast<double>(shard.samples);
    small_square += shard.square / count * whole * whole;
    small_inverse += count / static_cast<double>(shard.samples);
    ++counted;
  }
  if (counted < 2) return;
  small_square /= counted;
  small_inverse /= counted;
  const double new_noise = (small_square - total_square) / (small_inverse - 1 / batch);
  const double new_signal = total_square - new_noise / batch;
  const double share = std::max(1 / static_cast<double>(steps + 1), 1 - kept);
  noise += share * (new_noise - noise);
  signal += share * (new_signal - signal);
  ++steps;
}

std::optional<double> NoiseScale::value() const {
  if (steps == 0 || signal <= 0 || noise < 0) return std::nullopt;
  return noise / signal;
}

}  // namespace muster::train

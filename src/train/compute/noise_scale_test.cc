#include "train/compute/noise_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "train/compute/testing.h"

namespace muster::train {
namespace {

// Gradients of samples: the mean is `kMean` in each of 50 numbers, the noise uniform in [-1, 1),
// whose variance is a third.
constexpr std::size_t kNumbers = 50;
constexpr double kMean = 0.1;
constexpr double kTrue = (kNumbers / 3.0) / (kNumbers * kMean * kMean);

// `batches`: that the step takes, each of such shards.
void AddStep(const std::vector<std::int64_t>& sizes, std::uint64_t seed, NoiseScale& scale,
             std::int64_t batches = 1) {
  double batch = 0;
  for (const auto size : sizes) batch += static_cast<double>(size);
  std::vector<double> total(kNumbers);
  std::vector<ShardNorm> shards;
  shards.resize(sizes.size());
  for (std::size_t at = 0; at < sizes.size() * static_cast<std::size_t>(batches); ++at) {
    const std::size_t shard = at % sizes.size();
    std::vector<double> sum(kNumbers);
    for (std::int64_t i = 0; i < sizes[shard]; ++i) {
      std::vector<float> noise(kNumbers);
      FillRandom(
          at / sizes.size() * 1'000'000 + seed * 1000 + shard * 100 + static_cast<std::uint64_t>(i),
          noise);
      for (std::size_t j = 0; j < kNumbers; ++j) {
        sum[j] += (kMean + static_cast<double>(noise[j])) / batch;
      }
    }
    double square = 0;
    for (std::size_t j = 0; j < kNumbers; ++j) {
      square += sum[j] * sum[j];
      total[j] += sum[j] / static_cast<double>(batches);
    }
    shards[shard].samples += sizes[shard];
    shards[shard].square += square;
  }
  double total_square = 0;
  for (const double value : total) total_square += value * value;
  scale.Add(shards, total_square, batches);
}

TEST(NoiseScaleTest, FindsTheScaleOfKnownNoise) {
  for (const auto& sizes : {std::vector<std::int64_t>{8, 8, 8, 8}, {2, 9, 0, 30}}) {
    NoiseScale scale;
    for (std::uint64_t step = 0; step < 300; ++step) AddStep(sizes, step, scale);
    ASSERT_TRUE(scale.value().has_value());
    EXPECT_NEAR(*scale.value(), kTrue, 0.1 * kTrue) << sizes.size();
  }
}

TEST(NoiseScaleTest, FindsTheSameScaleInStepsOfSeveralBatches) {
  for (const auto& sizes : {std::vector<std::int64_t>{8, 8, 8, 8}, {2, 9, 0, 30}}) {
    NoiseScale scale;
    for (std::uint64_t step = 0; step < 300; ++step) {
      AddStep(sizes, step, scale, step % 3 == 0 ? 1 : 7);
    }
    ASSERT_TRUE(scale.value().has_value());
    EXPECT_NEAR(*scale.value(), kTrue, 0.1 * kTrue) << sizes.size();
  }
}

TEST(NoiseScaleTest, TheFirstStepsCountAlike) {
  NoiseScale scale;
  const std::vector<ShardNorm> shards{{1, 3}, {1, 3}};
  for (const double total : {2.0, 4.0, 9.0}) scale.Add(shards, total);
  // By hand: the shards' squares are 12, so the noise is 2 (12 - total), its mean over totals 2, 4
  // and 9 is 14, and the signal is total - noise / 2, on the average -2.
  EXPECT_DOUBLE_EQ(scale.noise, 14);
  EXPECT_DOUBLE_EQ(scale.signal, -2);
  EXPECT_EQ(scale.value(), std::nullopt);
}

TEST(NoiseScaleTest, SquareNormCountsEveryNumberOnce) {
  for (std::size_t n : {0U, 1U, 7U, 8U, 21U}) {
    std::vector<float> values(n);
    double expected = 0;
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<float>(i + 1);
      expected += static_cast<double>((i + 1) * (i + 1));
    }
    EXPECT_DOUBLE_EQ(SquareNorm(values), expected) << n;
  }
}

TEST(NoiseScaleTest, OneShardTellsNothing) {
  NoiseScale scale;
  AddStep({8}, 1, scale);
  EXPECT_EQ(scale.value(), std::nullopt);
}

}  // namespace
}  // namespace muster::train

#include "train/data/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace muster::train {
namespace {

std::vector<std::uint64_t> Epoch(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size) {
  std::vector<std::uint64_t> out;
  out.reserve(size);
  for (std::uint64_t i = 0; i < size; ++i) out.push_back(SampleAt(seed, epoch, i, size));
  return out;
}

TEST(OrderTest, EveryEpochHasEverySampleOnce) {
  for (std::uint64_t size = 1; size < 140; ++size) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      auto order = Epoch(size, epoch, size);
      std::ranges::sort(order);
      std::vector<std::uint64_t> all(size);
      std::iota(all.begin(), all.end(), 0U);
      ASSERT_EQ(order, all) << size << " " << epoch;
    }
  }
  std::vector<bool> seen(70'000);
  for (const auto sample : Epoch(1, 5, seen.size())) {
    ASSERT_FALSE(seen[sample]);
    seen[sample] = true;
  }
}

TEST(OrderTest, SeedsAndEpochsHaveOrdersOfTheirOwn) {
  const auto order = Epoch(1, 0, 1000);
  EXPECT_EQ(Epoch(1, 0, 1000), order);
  EXPECT_NE(Epoch(1, 1, 1000), order);
  EXPECT_NE(Epoch(2, 0, 1000), order);
  EXPECT_NE(Epoch(1, std::uint64_t{1} << 32U, 1000), order);
}

// Over many epochs each sample is equally often at each place; 4 deviations either way.
TEST(OrderTest, PlacesAreEquallyLikely) {
  constexpr std::uint64_t kSize = 10, kEpochs = 20'000;
  std::vector<int> counts(kSize * kSize);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (std::uint64_t i = 0; i < kSize; ++i) ++counts[i * kSize + SampleAt(3, epoch, i, kSize)];
  }
  const double mean = kEpochs / static_cast<double>(kSize);
  for (const int count : counts) EXPECT_NEAR(count, mean, 4 * std::sqrt(mean));
}

TEST(OrderTest, PositionsRunOnFromOneEpochToTheNext) {
  EXPECT_EQ(SampleDrawn(7, 25, 10), SampleAt(7, 2, 5, 10));
}

}  // namespace
}  // namespace muster::train

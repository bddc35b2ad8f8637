#include "train/run/rounded.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::train {
namespace {

TEST(Rounded, WhatRoundingTakesComesWithTheNext) {
  constexpr std::size_t kFloats = 5000;
  std::vector<std::byte> memory(1 << 16);
  Arena arena(memory);
  Rounded rounded(kFloats, arena);
  const Extent at{100, kFloats};
  std::vector<double> sum(at.size()), sent(at.size());
  std::vector<float> got(at.size());
  for (int step = 0; step < 50; ++step) {
    std::vector<float> values(at.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i * 7 + static_cast<std::size_t>(step))) / 3;
      sum[i] += static_cast<double>(values[i]);
    }
    Rounded::Widen(rounded.Round(at, values), got);
    for (std::size_t i = 0; i < got.size(); ++i) sent[i] += static_cast<double>(got[i]);
  }
  // Plain rounding would be off by up to fifty times this.
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sent[i], sum[i], 2e-4);
}

TEST(Rounded, WhatIsTooLargeIsSentInTurns) {
  std::vector<std::byte> memory(1 << 16);
  Arena arena(memory);
  Rounded rounded(1, arena);
  float sent = 0;
  for (int step = 0; step < 3; ++step) {
    std::vector<float> values{step == 0 ? 150000.0F : 0.0F};
    std::vector<float> got(1);
    Rounded::Widen(rounded.Round({0, 1}, values), got);
    sent += got[0];
  }
  EXPECT_NEAR(sent, 150000.0F, 16);
}

}  // namespace
}  // namespace muster::train

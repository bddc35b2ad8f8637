#include "base/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>

namespace muster {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// The published values of SplitMix64. Recorded seeds lose their meaning when these change.
TEST(Random, GivesThePublishedSequence) {
  Random zero(0);
  EXPECT_EQ(zero.Next(), 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(zero.Next(), 0x6E789E6AA1B965F4ULL);
  EXPECT_EQ(zero.Next(), 0x06C45D188009454FULL);
  EXPECT_EQ(zero.Next(), 0xF88BB8A8724C81ECULL);
  Random other(1234567);
  EXPECT_EQ(other.Next(), 6457827717110365317ULL);
  EXPECT_EQ(other.Next(), 3203168211198807973ULL);
  EXPECT_EQ(other.Next(), 9817491932198370423ULL);
}

TEST(Random, BetweenGivesTheSameNumbersEverywhere) {
  Random random(42);
  EXPECT_EQ(random.Between(1, 100), 14);
  EXPECT_EQ(random.Between(1, 100), 92);
  EXPECT_EQ(random.Between(-5, 5), -3);
  EXPECT_EQ(random.Between(0, 999'999), 255'764);
}

TEST(Random, BetweenReachesBothEndsAndNothingBeyond) {
  Random random(7);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.Between(-1, 2));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-1, 0, 1, 2}));
}

TEST(Random, BetweenTakesARangeOfOneAndTheWholeRange) {
  Random random(0);
  EXPECT_EQ(random.Between(3, 3), 3);
  Random raw(1);
  const auto first = static_cast<std::int64_t>(raw.Next() + (1ULL << 63));
  EXPECT_EQ(Random(1).Between(kMin, kMax), first);
  EXPECT_LE(Random(2).Between(kMin, 0), 0);
}

TEST(Random, ChanceIsNeverAtZeroAndAlwaysAtHundred) {
  Random random(9);
  int half = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(random.Chance(0));
    EXPECT_TRUE(random.Chance(100));
    half += random.Chance(50) ? 1 : 0;
  }
  EXPECT_GT(half, 400);
  EXPECT_LT(half, 600);
}

}  // namespace
}  // namespace muster

#include "train/compute/rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::train {
namespace {

using ::testing::HasSubstr;

TEST(RateTest, ConstantStaysAndWarmsUpLinearly) {
  const auto spec = ParseRate("constant:rate=0.2,warmup=4");
  ASSERT_TRUE(spec.has_value());
  EXPECT_FLOAT_EQ(RateAt(*spec, 1), 0.05F);
  EXPECT_FLOAT_EQ(RateAt(*spec, 2), 0.1F);
  EXPECT_FLOAT_EQ(RateAt(*spec, 4), 0.2F);
  EXPECT_FLOAT_EQ(RateAt(*spec, 1000), 0.2F);
}

TEST(RateTest, CosineFallsToItsFloorAndStaysThere) {
  const auto spec = ParseRate("cosine:rate=1,warmup=10,steps=110,floor=0.1");
  ASSERT_TRUE(spec.has_value());
  EXPECT_FLOAT_EQ(RateAt(*spec, 10), 1.0F);
  EXPECT_FLOAT_EQ(RateAt(*spec, 60), 0.55F);
  EXPECT_FLOAT_EQ(RateAt(*spec, 110), 0.1F);
  EXPECT_FLOAT_EQ(RateAt(*spec, 200), 0.1F);
}

TEST(RateTest, MistakesInASpecAreNamed) {
  EXPECT_THAT(Describe(ParseRate("step:rate=1").error()), HasSubstr("constant:rate=0.1"));
  EXPECT_THAT(Describe(ParseRate("cosine:rate=1").error()), HasSubstr("give steps="));
  EXPECT_THAT(Describe(ParseRate("constant:steps=5").error()), HasSubstr("rate, warmup"));
}

TEST(RateTest, TheGainOfNoiseLiesBetweenNothingAndLinear) {
  EXPECT_DOUBLE_EQ(RateFactor(BatchRule::kLinear, 256, 64, 0), 4);
  EXPECT_DOUBLE_EQ(RateFactor(BatchRule::kSquareRoot, 256, 64, 0), 2);
  EXPECT_DOUBLE_EQ(RateFactor(BatchRule::kNone, 256, 64, 0), 1);
  EXPECT_DOUBLE_EQ(RateFactor(BatchRule::kNoise, 256, 64, 0), 1);
  EXPECT_NEAR(RateFactor(BatchRule::kNoise, 256, 64, 1e9), 4, 1e-5);
  EXPECT_DOUBLE_EQ(RateFactor(BatchRule::kNoise, 256, 64, 256), 2.5);
}

// Only proportions count, and the batch that the rate was chosen for has it as it is.
TEST(RateTest, RulesAreOfTheBatchAgainstTheFirst) {
  for (const auto rule :
       {BatchRule::kNone, BatchRule::kLinear, BatchRule::kSquareRoot, BatchRule::kNoise}) {
    EXPECT_DOUBLE_EQ(RateFactor(rule, 64, 64, 640), 1);
    EXPECT_DOUBLE_EQ(RateFactor(rule, 7 * 64, 64, 640), RateFactor(rule, 7, 1, 10));
  }
  EXPECT_DOUBLE_EQ(RateFactor(BatchRule::kNoise, 7, 1, 10), 77.0 / 17.0);
}

TEST(RateTest, AFactorMultipliesTheRateOfTheStep) {
  const auto spec = ParseRate("cosine:rate=1,warmup=10,steps=110,floor=0.1");
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(ScaledRate(*spec, 42, 1), RateAt(*spec, 42));
  EXPECT_FLOAT_EQ(ScaledRate(*spec, 60, 3), 1.65F);
}

}  // namespace
}  // namespace muster::train

#include "base/quantile.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Quantile, IsInterpolatedBetweenTheTwoNearest) {
  EXPECT_DOUBLE_EQ(Quantile({30, 10, 20}, 0.5), 20);
  EXPECT_DOUBLE_EQ(Quantile({30, 10, 20}, 0.75), 25);
  EXPECT_DOUBLE_EQ(Quantile({30, 10, 20}, 0), 10);
  EXPECT_DOUBLE_EQ(Quantile({30, 10, 20}, 1), 30);
}

TEST(Quantile, OfOneIsThatOneAndOfNoneIsNothing) {
  EXPECT_DOUBLE_EQ(Quantile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(Quantile({}, 0.99), 0);
}

}  // namespace
}  // namespace muster

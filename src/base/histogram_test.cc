#include "base/histogram.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Histogram, BucketsCountWhatIsNotAboveTheirBound) {
  Histogram histogram;
  histogram.Add(500'000);         // at the first bound
  histogram.Add(500'001);         // just above it
  histogram.Add(60'000'000'000);  // above all
  EXPECT_EQ(histogram.UpTo(0), 1u);
  EXPECT_EQ(histogram.UpTo(1), 2u);
  EXPECT_EQ(histogram.UpTo(Histogram::kBounds.size() - 1), 2u);
  EXPECT_EQ(histogram.count(), 3u);
  EXPECT_DOUBLE_EQ(histogram.sum_s(), 60.001000001);
}

}  // namespace
}  // namespace muster

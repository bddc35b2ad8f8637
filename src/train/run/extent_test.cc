#include "train/run/extent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::train {
namespace {

using ::testing::ElementsAre;

TEST(ExtentTest, BucketsAreWholeLayersFromTheLastToTheFirst) {
  const std::vector<std::size_t> layers{100, 20, 30, 500, 10};
  EXPECT_THAT(BucketsOf(layers, 60),
              ElementsAre(Extent{650, 660}, Extent{150, 650}, Extent{100, 150}, Extent{0, 100}));
  EXPECT_THAT(BucketsOf(layers, 10'000), ElementsAre(Extent{0, 660}));
}

TEST(ExtentTest, PartsCoverABucketAndBeginOnItsLines) {
  const Extent bucket{50, 1050};
  for (int parts = 1; parts <= 90; ++parts) {
    std::size_t at = bucket.first;
    for (int part = 0; part < parts; ++part) {
      const auto extent = PartOf(bucket, parts, part);
      EXPECT_EQ(extent.first, at);
      EXPECT_TRUE(extent.size() == 0 || (extent.first - bucket.first) % kLineFloats == 0);
      at = extent.last;
    }
    EXPECT_EQ(at, bucket.last);
  }
}

}  // namespace
}  // namespace muster::train

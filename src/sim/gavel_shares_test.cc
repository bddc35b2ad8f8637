#include "sim/gavel_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::sim {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(GavelShares, MaxMinGivesWhatSmallOnesLeaveToTheOthers) {
  const std::vector<GavelJob> jobs = {{1, 0}, {4, 0}, {8, 0}};
  // The small one runs always; seven GPUs are left for two.
  EXPECT_THAT(MaxMinShares(jobs, 8), ElementsAre(1, DoubleEq(3.5 / 4), DoubleEq(3.5 / 8)));
}

TEST(GavelShares, MakespanLetsAllEndTogether) {
  const std::vector<GavelJob> jobs = {{2, 10}, {2, 30}};
  EXPECT_THAT(MakespanShares(jobs, 2), ElementsAre(0.25, 0.75));
  EXPECT_THAT(MakespanShares(jobs, 4), ElementsAre(DoubleEq(10.0 / 30), 1));
}

TEST(GavelShares, WhoIsFurthestBehindItsShareGoesFirst) {
  const auto behind = RankOf(10, 100, 0.5, 7), ahead = RankOf(90, 100, 0.5, 3);
  EXPECT_LT(behind, ahead);
  EXPECT_LT(RankOf(20, 100, 1, 9), RankOf(10, 100, 0.5, 2)) << "as far: the larger share";
  EXPECT_LT(RankOf(10, 100, 0.5, 2), RankOf(20, 200, 0.5, 3)) << "then who came first";
  EXPECT_LT(RankOf(0, 0, 0.5, 1), behind) << "who has just come has a place, too";
}

}  // namespace
}  // namespace muster::sim

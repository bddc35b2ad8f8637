#include "sim/pollux/fronts.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/random.h"

namespace muster::sim {
namespace {

constexpr double kEnd = std::numeric_limits<double>::infinity();

TEST(Fronts, WhatNobodyBeatsInBothIsTheFirst) {
  const std::vector<TwoScores> points = {{3, 1}, {1, 3}, {2, 2}, {2, 1}, {1, 1}};
  const auto standings = StandingsOf(points);
  std::string fronts;
  for (const auto& standing : standings) fronts += std::to_string(standing.front);
  EXPECT_EQ(fronts, "00012");
}

TEST(Fronts, LonelyPointsStandHigher) {
  const auto standings = StandingsOf(std::vector<TwoScores>{{10, 0}, {9, 1}, {5, 5}, {0, 10}});
  EXPECT_EQ(standings[0].distance, kEnd);
  EXPECT_EQ(standings[3].distance, kEnd);
  EXPECT_DOUBLE_EQ(standings[1].distance, 0.5 + 0.5);
  EXPECT_DOUBLE_EQ(standings[2].distance, 0.9 + 0.9);
}

TEST(Fronts, CopiesShareAFrontAndCountOnce) {
  const auto standings = StandingsOf(std::vector<TwoScores>{{2, 2}, {2, 2}, {1, 1}});
  EXPECT_EQ(standings[1].front, 0);
  EXPECT_EQ(standings[1].distance, 0);
  EXPECT_EQ(standings[2].front, 1);
}

TEST(Fronts, AgreeWithTheDefinition) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<TwoScores> points(20);
    for (auto& point : points) {
      point = {static_cast<double>(random.Between(0, 9)),
               static_cast<double>(random.Between(0, 9))};
    }
    const auto standings = StandingsOf(points);
    for (std::size_t a = 0; a < points.size(); ++a) {
      int deepest = -1;  // front of those that beat it
      for (std::size_t b = 0; b < points.size(); ++b) {
        const bool beats =
            points[b].first >= points[a].first && points[b].second >= points[a].second &&
            (points[b].first > points[a].first || points[b].second > points[a].second);
        if (beats) deepest = std::max(deepest, standings[b].front);
      }
      EXPECT_EQ(standings[a].front, deepest + 1);
    }
  }
}

}  // namespace
}  // namespace muster::sim

#include "engine/elastic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace muster::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Speed grows with that power of the GPUs.
ElasticJob Scaling(double power, int has = 0, double change_cost = 0) {
  ElasticJob job;
  for (const int gpus : {1, 2, 4, 8}) job.sizes.push_back({gpus, power * std::log(gpus)});
  job.gpus = has;
  job.change_cost = change_cost;
  return job;
}

TEST(Divide, EqualJobsGetEqualSizes) {
  const std::vector<ElasticJob> jobs(4, Scaling(0.9));
  EXPECT_THAT(DivideByValue(jobs, 16), ElementsAre(4, 4, 4, 4));
}

TEST(Divide, WhoScalesBetterGetsMore) {
  const std::vector<ElasticJob> jobs = {Scaling(0.9), Scaling(0.2)};
  const auto gpus = DivideByValue(jobs, 9);
  EXPECT_THAT(gpus, ElementsAre(8, 1));
}

TEST(Divide, NoMoreThanThereIsIsGivenOut) {
  for (int gpus = 0; gpus < 40; ++gpus) {
    const std::vector<ElasticJob> jobs = {Scaling(1), Scaling(0.5), Scaling(0.7), Scaling(0)};
    const auto given = DivideByValue(jobs, gpus);
    EXPECT_LE(std::accumulate(given.begin(), given.end(), 0), gpus);
  }
}

TEST(Divide, AChangeThatDoesNotPayIsNotMade) {
  const double gain = std::log(2);  // of the second job, were it to double
  EXPECT_THAT(DivideByValue(std::vector{Scaling(0, 1), Scaling(1, 4, 0.9 * gain)}, 9),
              ElementsAre(1, 8));
  EXPECT_THAT(DivideByValue(std::vector{Scaling(0, 1), Scaling(1, 4, 1.1 * gain)}, 9),
              ElementsAre(1, 4));
}

TEST(Divide, WhereNotAllCanRunPriorityDecidesThenService) {
  std::vector<ElasticJob> jobs(4, Scaling(1));
  jobs[0].served = 30;
  jobs[1].served = 10;
  jobs[2].served = 20;
  jobs[3].served = 40;
  jobs[3].priority = 1;
  EXPECT_THAT(DivideByValue(jobs, 2), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(DivideByValue(jobs, 0), ElementsAre(0, 0, 0, 0));
}

std::vector<Seats> Seat(const std::vector<SeatedJob>& jobs, const std::vector<int>& nodes) {
  return SeatByNodes(jobs, nodes);
}

TEST(Seating, WhoDoesNotChangeStays) {
  EXPECT_THAT(Seat({{{1, 1}, 2}, {{0}, 1}}, {4, 4}), ElementsAre(Seats{1, 1}, Seats{0}));
}

TEST(Seating, LargeJobsTakeWholeNodesAndSmallOnesTheTightestPart) {
  const auto seats = Seat({{{}, 1}, {{}, 8}, {{}, 2}}, {4, 4, 4});
  EXPECT_THAT(seats, ElementsAre(Seats{2}, Seats{0, 0, 0, 0, 1, 1, 1, 1}, Seats{2, 2}));
}

TEST(Seating, AJobGrowsWhereItIs) {
  EXPECT_THAT(Seat({{{1}, 4}}, {4, 4}), ElementsAre(Seats{1, 1, 1, 1}));
  EXPECT_THAT(Seat({{{1, 1, 1, 1}, 2}}, {4, 4}), ElementsAre(Seats{1, 1}));
}

TEST(Seating, SmallOnesMakeRoomForLargeOnes) {
  const auto seats = Seat({{{0}, 1}, {{1}, 1}, {{}, 4}}, {4, 4});
  EXPECT_THAT(seats, ElementsAre(Seats{1}, Seats{1}, Seats{0, 0, 0, 0}));
}

TEST(Seating, WhatMayNotMoveDoesNot) {
  const auto seats = Seat({{{0}, 1, false}, {{1}, 1, false}, {{}, 4}}, {4, 4});
  EXPECT_THAT(seats, ElementsAre(Seats{0}, Seats{1}, Seats{0, 0}));
}

TEST(Seating, NobodyLiesScattered) {
  const auto seats = Seat({{{}, 4}, {{}, 4}, {{}, 2}}, {3, 3, 1});
  EXPECT_THAT(seats[0], ElementsAre(0, 0, 0));
  EXPECT_THAT(seats[1], ElementsAre(1, 1, 1));
  EXPECT_THAT(seats[2], ElementsAre(2));
  EXPECT_THAT(Seat({{{}, 1}}, {})[0], IsEmpty());
}

}  // namespace
}  // namespace muster::engine

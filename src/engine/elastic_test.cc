#include "engine/elastic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace muster::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Speed grows with that power of the GPUs; a size other than the one that it has costs it
// something.
ElasticJob Scaling(double power, int has = 0, double change_cost = 0) {
  ElasticJob job;
  for (const int gpus : {1, 2, 4, 8}) {
    const double changes = has == 0 || gpus == has ? 0 : change_cost;
    job.sizes.push_back({gpus, power * std::log(gpus) - changes});
  }
  job.gpus = has;
  return job;
}

std::vector<int> DivideByValue(const std::vector<ElasticJob>& jobs, int gpus) {
  return engine::DivideByValue(jobs, std::vector{gpus}, gpus);
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

// Seven that run keep their places, and the gang of eight waits for all of them.
TEST(Divide, NobodyBeginsBeforeOneThatIsOverdue) {
  std::vector<ElasticJob> jobs(9, Scaling(1, 1));
  jobs[7] = {.sizes = {{8, 0}}};
  jobs[7].served = 1;
  jobs[8] = Scaling(1);
  jobs[8].served = 2;
  EXPECT_THAT(DivideByValue(jobs, 8), ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 1));
  jobs[7].overdue = true;
  EXPECT_THAT(DivideByValue(jobs, 8), ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 0));
  jobs[8].priority = 1;
  EXPECT_THAT(DivideByValue(jobs, 8), ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 1));
}

TEST(Divide, WhoIsOverdueForOneTypeHoldsNobodyOfAnotherUp) {
  std::vector<ElasticJob> jobs(4, Scaling(1));
  jobs[0] = {.sizes = {{4, 0}}, .gpus = 4};
  jobs[1] = {.sizes = {{8, 0}}, .served = 1, .overdue = true};
  jobs[2].served = jobs[3].served = 2;
  jobs[3].type = 1;
  EXPECT_THAT(engine::DivideByValue(jobs, std::vector{8, 4}, 12), ElementsAre(4, 0, 0, 1));
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

// As a job that runs on the first type with that many GPUs would be on each type.
ElasticChoice OnTypes(const std::vector<double>& faster, int has, double change_cost = 0.3) {
  ElasticChoice out;
  for (std::uint32_t type = 0; type < faster.size(); ++type) {
    auto job = Scaling(0.9, type == 0 ? has : 0, change_cost);
    const double moves = type == 0 || has == 0 ? 0 : change_cost;
    for (auto& size : job.sizes) size.value += std::log(faster[type]) - moves;
    job.type = type;
    out.push_back(job);
  }
  return out;
}

std::vector<std::pair<std::size_t, int>> DivideTypes(const std::vector<ElasticChoice>& jobs,
                                                     const std::vector<int>& room, int gpus) {
  std::vector<std::pair<std::size_t, int>> out;
  for (const auto& part : DivideByType(jobs, room, gpus)) out.emplace_back(part.choice, part.gpus);
  return out;
}

TEST(DivideTypes, JobsAreExchangedWhereThatPays) {
  ElasticChoice easy = OnTypes({1, 1}, 4);
  std::swap(easy[0].type, easy[1].type);  // it runs on the second
  EXPECT_THAT(DivideTypes({OnTypes({1, 3}, 4), easy}, {4, 4}, 8),
              ElementsAre(std::pair(1U, 4), std::pair(1U, 4)));
  EXPECT_THAT(DivideTypes({OnTypes({1, 1.2}, 4), easy}, {4, 4}, 8),
              ElementsAre(std::pair(0U, 4), std::pair(0U, 4)));
}

TEST(DivideTypes, WhoHasNothingGoesWhereThereIsRoom) {
  const std::vector<ElasticChoice> jobs(4, OnTypes({1, 1}, 0));
  int gpus = 0;
  for (const auto& [type, given] : DivideTypes(jobs, {2, 2}, 4)) gpus += given;
  EXPECT_EQ(gpus, 4);
}

TEST(DivideTypes, WhatAllMayHaveBindsToo) {
  const std::vector<ElasticChoice> jobs(2, OnTypes({1, 1}, 0));
  for (int all = 0; all < 20; ++all) {
    int gpus = 0;
    for (const auto& [type, given] : DivideTypes(jobs, {8, 8}, all)) gpus += given;
    EXPECT_LE(gpus, all);
    EXPECT_GE(gpus, std::min(all, 2));
  }
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

TEST(Seating, AGangThatIsNoNumberOfWholeNodesTakesAPartOfTheLast) {
  EXPECT_THAT(Seat({{{}, 6, true, 1, 6}, {{0}, 1, false}}, {4, 4}),
              ElementsAre(Seats{1, 1, 1, 1, 0, 0}, Seats{0}));
  EXPECT_THAT(Seat({{{}, 6, true, 2, 6}}, {5, 5}), ElementsAre(Seats{0, 0, 0, 0, 1, 1}));
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

TEST(Seating, TheGpusOfAWorkerLieOnOneNode) {
  const auto seats = Seat({{{}, 6, true, 3}, {{}, 2, true, 2}}, {4, 4, 3});
  EXPECT_THAT(seats, ElementsAre(Seats{0, 0, 0, 1, 1, 1}, Seats{2, 2}));
  EXPECT_THAT(Seat({{{}, 4, true, 2}}, {3, 1}), ElementsAre(Seats{0, 0}));
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

#include "sim/jobs/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/temp_folder.h"
#include "base/tree.h"
#include "sim/jobs/demand.h"
#include "sim/jobs/generate.h"

namespace muster::sim {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1000;

TraceJob Job(const std::string& queue, std::int64_t submit_s, std::int64_t gpus,
             std::int64_t duration_s) {
  TraceJob job;
  job.queue = queue;
  job.submit_ms = submit_s * kSecond;
  job.gpus = gpus;
  job.duration_ms = duration_s * kSecond;
  return job;
}

// A trace in a file, as long as this lives.
class TraceFile {
 public:
  explicit TraceFile(const std::vector<TraceJob>& jobs)
      : path_(folder_.Write("jobs.csv", WriteJobs(jobs))) {}
  const std::string& path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
};

// Two queues that need all eight GPUs, one after the other.
std::vector<TraceJob> InTurns() {
  std::vector<TraceJob> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(Job("a", 0, 1, 3600));
  for (int i = 0; i < 8; ++i) jobs.push_back(Job("b", 3600, 1, 3600));
  return jobs;
}

TEST(Demand, OfAQueueCountsTheTimeInWhichItAsksForNothing) {
  std::vector<TraceJob> jobs = {Job("a", 0, 2, 100), Job("b", 90, 5, 5), Job("a", 100, 1, 1)};
  const std::string b = "b";
  EXPECT_EQ(Demand(jobs).Peak(), 7);
  EXPECT_EQ(Demand(jobs).At(0.9), 2);
  EXPECT_EQ(Demand(jobs, &b).At(0.9), 0);
  EXPECT_EQ(Demand(jobs, &b).Peak(), 5);
  EXPECT_EQ(Demand(jobs, &b).largest(), 5);
}

TEST(Divide, AllGpusGoOutAndTheLargestJobOfEachQueueFits) {
  std::vector<TraceJob> jobs = InTurns();
  jobs.push_back(Job("c", 10, 6, 1));
  for (const auto division : {Division::kPercentile, Division::kWork}) {
    for (const std::int64_t gpus : {8, 15, 100}) {
      const auto parts = Divide(jobs, gpus, division);
      ASSERT_TRUE(parts) << parts.error().message;
      EXPECT_EQ(parts->at("a") + parts->at("b") + parts->at("c"), gpus);
      EXPECT_GE(parts->at("c"), 6);
    }
    const auto none = Divide(jobs, 7, division);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, HasSubstr("the largest jobs of the 3 queues need 8"));
  }
}

TEST(Divide, ByWorkAndByPercentileDiffer) {
  // The same GPU time: a little all the time, or much for a tenth of it.
  std::vector<TraceJob> jobs = {Job("even", 0, 1, 1000)};
  for (int i = 0; i < 10; ++i) jobs.push_back(Job("burst", 0, 1, 100));
  jobs.push_back(Job("even", 1000, 1, 1));
  const auto work = Divide(jobs, 10, Division::kWork);
  EXPECT_EQ(work->at("even"), 5);
  EXPECT_EQ(work->at("burst"), 5);
  const auto percentile = Divide(jobs, 10, Division::kPercentile);
  EXPECT_EQ(percentile->at("even"), 1);
  EXPECT_EQ(percentile->at("burst"), 9);
}

TEST(RunPooling, WhatOneQueueLeavesIdleIsLentToTheOther) {
  const TraceFile file(InTurns());
  const auto run = RunPooling({.workload = file.path()});
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->sizes.size(), 1U);
  const auto& ways = run->sizes[0].ways;
  EXPECT_EQ(run->sizes[0].parts, (Parts{{"a", 4}, {"b", 4}}));
  EXPECT_EQ(ways[0].name, "fixed");
  EXPECT_EQ(ways[0].mean_wait_s, 1800) << "half of each queue waits for the other half";
  EXPECT_EQ(ways[0].utilisation_pct, 50);
  EXPECT_EQ(ways[0].idle_while_waiting_pct, 50);
  EXPECT_EQ(ways[0].ended, 4);
  EXPECT_EQ(ways[1].name, "guaranteed");
  EXPECT_EQ(ways[1].mean_wait_s, 0);
  EXPECT_EQ(ways[1].utilisation_pct, 100);
  EXPECT_EQ(ways[1].idle_while_waiting_pct, 0);
  EXPECT_EQ(ways[1].ended, 8);
  EXPECT_EQ(ways[1].jobs_per_gpu_week, 168) << "one an hour";
  EXPECT_EQ(ways[3].name, "fixed-same-wait");
  EXPECT_EQ(ways[3].gpus, 16);
  EXPECT_EQ(ways[3].mean_wait_s, 0);
  EXPECT_EQ(ways[3].utilisation_pct, 50);
}

// Four lent GPUs are taken back at 1,800 s and given again at 2,800 s.
TEST(RunPooling, WhatWasLentIsTakenBackAndARestartCosts) {
  std::vector<TraceJob> jobs = {Job("a", 0, 4, 3600), Job("a", 0, 4, 3600),
                                Job("b", 1800, 4, 1000)};
  const TraceFile file(jobs);
  const auto run = RunPooling({.workload = file.path(), .nodes = 1});
  ASSERT_TRUE(run) << run.error().message;
  const auto& way = run->sizes[0].ways[1];
  EXPECT_EQ(run->sizes[0].parts, (Parts{{"a", 4}, {"b", 4}}));
  EXPECT_EQ(way.preemptions, 1);
  EXPECT_EQ(way.mean_wait_s, 0);
  EXPECT_EQ(way.makespan_s, 3600 + 1000 + 30);
  EXPECT_NEAR(way.lost_gpu_h, 4 * 30 / 3600.0, 1e-9);
  EXPECT_EQ(run->sizes[0].ways[0].preemptions, 0) << "fixed parts take from nobody";
}

TEST(RunPooling, AnElasticJobUsesWhatIsFreeAndASingleGpuDoesNotGrow) {
  const TraceFile several({Job("a", 0, 4, 3600)}), single({Job("a", 0, 1, 3600)});
  const auto grows = RunPooling({.workload = several.path(), .nodes = 1});
  ASSERT_TRUE(grows) << grows.error().message;
  EXPECT_EQ(grows->sizes[0].ways[1].mean_jct_s, 3600);
  EXPECT_NEAR(grows->sizes[0].ways[2].mean_jct_s, 3600 * (0.9 / 2 + 0.1), 100);
  const auto rigid = RunPooling({.workload = single.path(), .nodes = 1});
  ASSERT_TRUE(rigid);
  EXPECT_EQ(rigid->sizes[0].ways[2].mean_jct_s, 3600);
}

// Two jobs of one queue hold eight of twelve GPUs, four of them lent, when the other queue wants
// its eight.
TEST(RunPooling, ElasticJobsMakeRoomWithoutBeingStopped) {
  const TraceFile file({Job("a", 0, 4, 3600), Job("a", 0, 4, 3600), Job("b", 60, 8, 3600)});
  const auto run = RunPooling({.workload = file.path(), .nodes = 3, .gpus_per_node = 4});
  ASSERT_TRUE(run) << run.error().message;
  const auto& ways = run->sizes[0].ways;
  EXPECT_EQ(ways[1].preemptions, 1);
  EXPECT_EQ(ways[2].preemptions, 0);
  EXPECT_GT(ways[2].changes, 0);
  EXPECT_EQ(ways[2].mean_wait_s, 0);
}

TEST(RunPooling, TheExampleIsTheSameTwiceAndEverySizeHasAllWays) {
  const PoolingOptions options{.workload = SourceTree() + "/examples/lab/jobs.csv",
                               .percentiles = {70, 100}};
  const auto one = RunPooling(options), two = RunPooling(options);
  ASSERT_TRUE(one && two);
  ASSERT_EQ(one->sizes.size(), 2U);
  EXPECT_LT(one->sizes[0].nodes, one->sizes[1].nodes);
  for (std::size_t s = 0; s < 2; ++s) {
    ASSERT_EQ(one->sizes[s].ways.size(), 4U);
    for (std::size_t w = 0; w < 4; ++w) {
      EXPECT_EQ(one->sizes[s].ways[w].mean_jct_s, two->sizes[s].ways[w].mean_jct_s);
      EXPECT_EQ(one->sizes[s].ways[w].in_use, two->sizes[s].ways[w].in_use);
    }
    EXPECT_LE(one->sizes[s].ways[3].mean_wait_s, one->sizes[s].ways[1].mean_wait_s);
  }
}

// The figures are in docs/results.md; here only their order.
TEST(RunPooling, OnAPublicTracePoolingShortensTheWaitAndElasticityTheJobs) {
  const char* folder = std::getenv("MUSTER_TRACES");
  if (folder == nullptr) GTEST_SKIP() << "MUSTER_TRACES names no folder with the public traces";
  const auto run = RunPooling({.workload = std::string(folder) + "/pollux/philly.csv.gz"});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->queues.size(), 15U);
  const auto& ways = run->sizes[0].ways;
  EXPECT_LT(ways[1].mean_wait_s, ways[0].mean_wait_s / 10);
  EXPECT_LT(ways[2].mean_jct_s, ways[1].mean_jct_s);
  EXPECT_GT(ways[3].gpus, ways[1].gpus);
}

}  // namespace
}  // namespace muster::sim

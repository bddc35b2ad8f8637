#include "sim/jobs/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/temp_folder.h"
#include "base/tree.h"
#include "sim/jobs/read_jobs.h"

namespace muster::sim {
namespace {

using ::testing::HasSubstr;

std::vector<TraceJob> Make(const std::string& like, std::int64_t jobs, std::uint64_t seed = 1,
                           double rate = 0) {
  auto made = GenerateJobs({.jobs = jobs, .seed = seed, .like = like, .jobs_per_hour = rate});
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? *made : std::vector<TraceJob>{};
}

double SharePercent(const std::vector<TraceJob>& jobs, std::int64_t gpus) {
  const auto count = std::ranges::count(jobs, gpus, &TraceJob::gpus);
  return 100 * static_cast<double>(count) / static_cast<double>(jobs.size());
}

TEST(Generate, ASeedSaysEverything) {
  for (const auto& like : Likenesses()) {
    EXPECT_EQ(Make(like, 500, 7), Make(like, 500, 7));
    EXPECT_NE(Make(like, 500, 7), Make(like, 500, 8));
  }
}

TEST(Generate, WhatIsWrittenIsReadAgain) {
  const TempFolder folder;
  for (const auto& like : Likenesses()) {
    const auto jobs = Make(like, 300);
    const auto read = ReadJobs(folder.Write("jobs.csv", WriteJobs(jobs)));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->jobs, jobs);
  }
}

TEST(Generate, GavelHasTheSizesAndDurationsOfItsRule) {
  const auto jobs = Make("gavel", 20'000, 3, 60);
  EXPECT_NEAR(SharePercent(jobs, 1), 70, 1.5);
  EXPECT_NEAR(SharePercent(jobs, 8), 5, 0.8);
  const auto [shortest, longest] = std::ranges::minmax(jobs, {}, &TraceJob::duration_ms);
  EXPECT_GE(shortest.duration_ms, 1'897'000);
  EXPECT_LE(longest.duration_ms, 600'000'000);
  const auto common =
      std::ranges::count_if(jobs, [](const TraceJob& job) { return job.duration_ms < 60'000'000; });
  EXPECT_NEAR(static_cast<double>(common) / 20'000, 0.8, 0.01);
  EXPECT_NEAR(static_cast<double>(jobs.back().submit_ms) / 60'000, 20'000, 600) << "one a minute";
}

TEST(Generate, PhillyHasItsMedians) {
  const auto jobs = Make("philly", 40'000);
  EXPECT_NEAR(SharePercent(jobs, 1), 93.2, 0.5);
  std::vector<std::int64_t> ones;
  for (const auto& job : jobs) {
    if (job.gpus == 1) ones.push_back(job.duration_ms / 1000);
  }
  std::ranges::sort(ones);
  EXPECT_NEAR(static_cast<double>(ones[ones.size() / 2]), 1117, 60);
  EXPECT_NEAR(static_cast<double>(ones[ones.size() * 9 / 10]), 8512, 600);
}

TEST(Generate, AnUnknownLikenessIsToldThoseThereAre) {
  const auto made = GenerateJobs({.jobs = 1, .like = "moon"});
  ASSERT_FALSE(made);
  EXPECT_THAT(Describe(made.error()), HasSubstr("there are gavel, philly"));
}

// examples/lab/jobs.csv: `muster sim generate --jobs 60 --seed 1 --rate 30`
TEST(Generate, TheExampleIsWhatItSays) {
  const auto read = ReadJobs(SourceTree() + "/examples/lab/jobs.csv");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->jobs, Make("gavel", 60, 1, 30));
}

}  // namespace
}  // namespace muster::sim

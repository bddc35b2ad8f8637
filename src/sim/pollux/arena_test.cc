#include "sim/pollux/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/tree.h"

namespace muster::sim {
namespace {

using ::testing::HasSubstr;

// A small set of our own making, laid out as the published one.
std::string Small() { return SourceTree() + "/examples/lab/pollux"; }

Result<ArenaResult> Play(const std::string& policy, std::uint64_t seed = 0) {
  ManualClock clock;
  return RunArena({.profiles = Small(),
                   .workload = Small() + "/workload.csv",
                   .policy = policy,
                   .seed = seed,
                   .nodes = 2,
                   .gpus_per_node = 2},
                  clock);
}

std::map<std::string, std::int64_t> Times(const ArenaResult& result) {
  std::map<std::string, std::int64_t> times;
  for (const auto& job : result.jobs) times[job.name] = job.jct_s;
  return times;
}

// One epoch is 100 iterations of the first batch, a step takes 1 s on one GPU. Submitted at 10, it
// starts at 60, pays 30 s, and runs two epochs.
TEST(Arena, AJobAloneTakesWhatItsProfileSays) {
  const auto result = Play("tiresias");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(Times(*result).at("alone"), 60 - 10 + 30 + 200);
}

TEST(Arena, TheSameSeedGivesTheSameTimes) {
  for (const auto& policy : ArenaPolicies()) {
    const auto one = Play(policy, 7), two = Play(policy, 7);
    ASSERT_TRUE(one) << policy << ": " << one.error().message;
    EXPECT_EQ(Times(*one), Times(*two)) << policy;
    EXPECT_EQ(one->jobs.size(), 3U) << policy;
  }
}

TEST(Arena, StretchesSayWhoHeldWhatAndWhen) {
  for (const auto& policy : ArenaPolicies()) {
    const auto result = Play(policy);
    ASSERT_TRUE(result) << policy;
    EXPECT_EQ(result->gpus, 4);
    std::int64_t starts = 0, held = 0, used = 0;
    for (const auto& job : result->jobs) {
      EXPECT_EQ(job.application, "toy");
      ASSERT_FALSE(job.stretches.empty()) << policy << " " << job.name;
      EXPECT_EQ(job.stretches.back().end_s, job.submit_s + job.jct_s) << "it ends as the job does";
      std::int64_t before = job.submit_s;
      for (const auto& stretch : job.stretches) {
        EXPECT_LE(before, stretch.start_s);
        EXPECT_LT(stretch.start_s, stretch.end_s);
        before = stretch.end_s;
        held += (stretch.end_s - stretch.start_s) * stretch.gpus;
      }
      starts += static_cast<std::int64_t>(job.stretches.size());
    }
    EXPECT_EQ(starts, result->restarts + 3) << policy << ": a stretch a start";
    const auto& use = result->gpus_in_use;
    for (std::size_t i = 0; i + 1 < use.size(); ++i) {
      EXPECT_NE(use[i].gpus, use[i + 1].gpus) << "changes only";
      EXPECT_LE(use[i].gpus, 4);
      used += (use[i + 1].at_s - use[i].at_s) * use[i].gpus;
    }
    ASSERT_FALSE(use.empty());
    EXPECT_EQ(use.back().gpus, 0);
    EXPECT_EQ(use.back().at_s, result->makespan_s);
    EXPECT_EQ(used, held) << policy;
  }
}

TEST(Arena, WhatIsWrongIsSaid) {
  const auto unknown = Play("magic");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().hint, HasSubstr("tiresias"));
  ManualClock clock;
  const auto no_file = RunArena(
      {.profiles = Small(), .workload = Small() + "/none.csv", .policy = "tiresias"}, clock);
  EXPECT_EQ(no_file.error().code, ErrorCode::kNotFound);
  const auto no_profile = RunArena(
      {.profiles = "/nonexistent", .workload = Small() + "/workload.csv", .policy = "tiresias"},
      clock);
  EXPECT_EQ(no_profile.error().code, ErrorCode::kNotFound);
}

// Every completion time that the authors published for the two policies without randomness.
TEST(Arena, PublishedTimesAreReachedToTheSecond) {
  const char* traces = std::getenv("MUSTER_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "set MUSTER_TRACES to a folder with the public traces";
  const std::string pollux = std::string(traces) + "/pollux";
  SystemClock clock;
  for (const std::string load : {"0.5", "1.0", "2.0"}) {
    const std::string folder = load == "1.0" ? "/workloads/" : "/workloads-" + load + "/";
    for (const std::string policy : {"tiresias", "optimus"}) {
      std::ifstream file(pollux + "/reference/jobload_" + policy + "-" + load + ".json");
      const auto reference = nlohmann::json::parse(file).at("jct_s");
      for (const auto& [workload, times] : reference.items()) {
        const auto result = RunArena({.profiles = pollux,
                                      .workload = pollux + folder + workload + ".csv",
                                      .policy = policy == "optimus" ? "optimus-oracle" : policy},
                                     clock);
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(Times(*result), times.get<decltype(Times(*result))>())
            << policy << " " << load << " " << workload;
      }
    }
  }
}

}  // namespace
}  // namespace muster::sim

#include "sim/pollux/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "base/tree.h"
#include "sim/pollux/application.h"

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

// On one node of two GPUs: one, then a pair, then another single one.
std::map<std::string, std::int64_t> PlayThree(const std::string& policy) {
  const TempFolder folder;
  const auto workload = folder.Write("three.csv",
                                     "name,time,application,num_replicas,batch_size\n"
                                     "first,10,toy,1,8\npair,20,toy,2,16\nlast,70,toy,1,8\n");
  ManualClock clock;
  const auto result = RunArena(
      {.profiles = Small(), .workload = workload, .policy = policy, .nodes = 1, .gpus_per_node = 2},
      clock);
  EXPECT_TRUE(result) << policy;
  return Times(*result);
}

TEST(Arena, FifoLetsNobodyPass) {
  const auto times = PlayThree("fifo");
  EXPECT_EQ(times.at("first"), 60 - 10 + 30 + 200);
  EXPECT_GT(times.at("pair") + 20, times.at("first") + 10);
  EXPECT_GT(times.at("last") + 70, times.at("pair") + 20);
}

TEST(Arena, SrtfLetsTheShortestRun) {
  const auto times = PlayThree("srtf");
  EXPECT_LT(times.at("pair"), 60 + 30 + 200) << "half as many steps as the others";
  EXPECT_GT(times.at("first") + 10, times.at("pair") + 20);
}

TEST(Arena, MusterDecidesAsItIsSet) {
  engine::Policy policy;
  policy.by_goodput = policy.grow = false;
  ManualClock clock;
  const auto run = RunArena({.profiles = Small(),
                             .workload = Small() + "/workload.csv",
                             .policy = "muster",
                             .nodes = 2,
                             .gpus_per_node = 2,
                             .muster = policy},
                            clock);
  ASSERT_TRUE(run) << run.error().message;
  const auto most = [](const ArenaResult& result) {
    int gpus = 0;
    for (const auto& job : result.jobs) {
      for (const auto& stretch : job.stretches) gpus = std::max(gpus, stretch.gpus);
    }
    return gpus;
  };
  EXPECT_EQ(most(*run), 1) << "nobody grows";
  EXPECT_GT(most(*Play("muster")), 1);
}

TEST(Arena, UnderGavelNobodyStartsInsideARound) {
  // The pair does not fit beside the first one, which is as far behind and came before it.
  for (const std::string policy : {"gavel-max-min", "gavel-makespan"}) {
    EXPECT_GE(PlayThree(policy).at("last") + 70, 360 + 30 + 200) << policy;
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

std::string Workload(const std::string& rows) {
  return "name,time,application,num_replicas,batch_size\n" + rows;
}

TEST(Arena, RowsOfAWorkloadThatCannotBePlayedAreNamed) {
  const TempFolder folder;
  const auto refused = [&](const std::string& rows) {
    ManualClock clock;
    const auto run = RunArena({.profiles = Small(),
                               .workload = folder.Write("w.csv", Workload(rows)),
                               .policy = "fifo",
                               .nodes = 100},
                              clock);
    return run ? "" : Describe(run.error());
  };
  EXPECT_EQ(refused("a,0,toy,1,8\nb,0,toy,1,8\n"), "");
  EXPECT_THAT(refused("a,0,toy,1,8\na,900,toy,1,8\n"), HasSubstr("w.csv:3: there is a job a"));
  EXPECT_THAT(refused("a,0,toy,1,65\n"), HasSubstr("batches from 8 to 64"));
  EXPECT_THAT(refused("a,0,toy,65,64\n"), HasSubstr("1 to 64 GPUs")) << "a sample for each";
}

// What is said of the toy with this text in one of its files.
std::string Complaint(const std::string& file, const std::string& text) {
  const TempFolder folder;
  std::filesystem::copy(Small(), folder.path(), std::filesystem::copy_options::recursive);
  folder.Write(file, text);
  const auto read = Application::Read(folder.path(), "toy");
  return read ? "" : Describe(read.error());
}

TEST(Application, TimesThatNoStepCanTakeAreNamed) {
  const auto said = [](const std::string& rows) {
    return Complaint("profiles/toy/placements.csv",
                     "placement,local_bsz,step_time,sync_time\n" + rows);
  };
  EXPECT_EQ(said("1,8,1,0\n1,16,2,0.5\n"), "");
  EXPECT_THAT(said(""), HasSubstr("placements.csv has no rows"));
  EXPECT_THAT(said("1,8,1,0\n1,0,1,0\n"), HasSubstr("placements.csv:3: local_bsz is 0"));
  EXPECT_THAT(said("1,8.5,1,0\n"), HasSubstr("whole numbers from 1 to 10000000 will do"));
  EXPECT_THAT(said("1,5000000000,1,0\n"), HasSubstr("local_bsz is 5000000000"));
  EXPECT_THAT(said("1,8,0,0\n"), HasSubstr("step_time is 0"));
  EXPECT_THAT(said("1,8,nan,0\n"), HasSubstr("step_time is no number"));
  EXPECT_THAT(said("1,8,1,-1\n"), HasSubstr("sync_time is -1"));
  EXPECT_THAT(said("1,8,1,1\n"), HasSubstr("sync_time is 1 of a step_time of 1"));
  EXPECT_THAT(said("1,8,1,0\n11,8,1,0\n1,8,2,0\n"),
              HasSubstr("placements.csv:4: placement 1 has a row with a local_bsz of 8 already"));
  EXPECT_THAT(said("1,9,1,0\n1,18,2,0\n"), HasSubstr("no GPU was measured with less than 9"));
  EXPECT_THAT(said("1,8,1,0\n"), HasSubstr("GPUs were measured with 8 to 8 samples"));
}

TEST(Application, RunsThatLeadNowhereAreNamed) {
  const auto said = [](const std::string& rows, const std::string& name = "8") {
    return Complaint("profiles/toy/validation-" + name + ".csv",
                     "progress,iteration,metric,grad_sqr,grad_var\n" + rows);
  };
  EXPECT_EQ(said("1,1,0,0,1\n2,2,0,1,0\n"), "");
  EXPECT_THAT(said("1,1,0,1,1\n1,2,0,1,1\n"), HasSubstr("8.csv:3: progress is 1 after 1"));
  EXPECT_THAT(said("1,0,0,1,1\n"), HasSubstr("8.csv:2: iteration is 0 after 0"));
  EXPECT_THAT(said("1,1,0,-1,1\n"), HasSubstr("grad_sqr is -1"));
  EXPECT_THAT(said("1,1,0,0,0\n"), HasSubstr("grad_sqr and grad_var are both 0"));
  EXPECT_THAT(said("1,1,0,1e200,1e200\n"), HasSubstr("grad_sqr is 1e200"));
  EXPECT_THAT(said("1,1,0,1,1\n", "many"), HasSubstr("validation-many.csv names no batch"));
  EXPECT_THAT(said("1,1,0,1,1\n", "0"), HasSubstr("validation-0.csv names no batch"));
  EXPECT_THAT(said("1,1,0,1,1\n", "008"), HasSubstr("is a second run with that batch"));
}

TEST(Application, AMeshInWhichNothingLiesIsRefused) {
  const auto points = [](const std::string& rows) {
    return Complaint("interpolation/toy_points.csv",
                     "num_nodes,num_replicas,local_bsz,step_time,sync_time\n" + rows);
  };
  EXPECT_THAT(points("0,1,8,1,0\n"), HasSubstr("toy_points.csv:2: num_nodes is 0"));
  EXPECT_THAT(points("1,1,8,1,2\n"), HasSubstr("toy_points.csv:2: sync_time is 2"));
  EXPECT_THAT(points("1,1,8,1,0\n1,1,16,1,0\n"), HasSubstr("toy_tetra.csv:2: p2 is 2"));
  const auto cells = [](const std::string& rows) {
    return Complaint("interpolation/toy_tetra.csv", "p0,p1,p2,p3\n" + rows);
  };
  EXPECT_THAT(cells("0,1,2,4\n"), HasSubstr("whole numbers from 0 to 3 will do"));
  EXPECT_THAT(cells("0,1,2,2\n"), HasSubstr("has flat tetrahedra only"));
  EXPECT_EQ(cells("0,1,2,2\n0,1,2,3\n"), "");
}

// A toy with one batch of ten, in passes of one sample. `end`: its iterations.
void WriteSmallest(const TempFolder& folder, const std::string& step_s, const std::string& end) {
  folder.Write("profiles/toy/placements.csv",
               "placement,local_bsz,step_time,sync_time\n1,1," + step_s + ",0\n");
  folder.Write("profiles/toy/validation-10.csv",
               "progress,iteration,metric,grad_sqr,grad_var\n" + end + "," + end + ",0,1,1\n");
  std::filesystem::copy(Small() + "/interpolation", folder / "interpolation");
}

TEST(Application, ATrainingThatWouldNotEndInALifetimeIsRefused) {
  const TempFolder folder;
  WriteSmallest(folder, "3600", "1000000000");
  const auto read = Application::Read(folder.path(), "toy");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("could take more than 300 years"));
}

// On four GPUs in three passes: ten samples are less than one for each.
TEST(Arena, ABatchThatDoesNotGoIntoItsPassesIsTrainedAllTheSame) {
  const TempFolder folder;
  WriteSmallest(folder, "1", "10");
  const auto workload = folder.Write("w.csv", Workload("a,0,toy,4,10\n"));
  for (const auto& policy : ArenaPolicies()) {
    int looks = 0;  // also between those of a search
    ManualClock clock;
    const auto run = RunArena({.profiles = folder.path(),
                               .workload = workload,
                               .policy = policy,
                               .nodes = 1,
                               .gpus_per_node = 4,
                               .progress = [&](double) -> Result<void> {
                                 if (++looks < 10'000) return {};
                                 return Fail(ErrorCode::kTimeout, "it does not end");
                               }},
                              clock);
    EXPECT_TRUE(run) << policy << ": " << run.error().message;
  }
}

TEST(Arena, ADecisionThatNobodyWaitsForIsBrokenOff) {
  const TempFolder folder;
  WriteSmallest(folder, "1", "10");
  const auto workload = folder.Write("w.csv", Workload("a,0,toy,4,10\nb,0,toy,4,10\n"));
  int looks = 0;
  ManualClock clock;
  const auto run = RunArena({.profiles = folder.path(),
                             .workload = workload,
                             .policy = "pollux",
                             .progress = [&](double) -> Result<void> {
                               if (++looks < 10) return {};
                               return Fail(ErrorCode::kConflict, "cancelled");
                             }},
                            clock);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message, "cancelled");
  EXPECT_LE(looks, 11) << "a search has a hundred rounds";
}

TEST(Arena, MoreJobsThanAreAllowedAreRefused) {
  const TempFolder folder;
  WriteSmallest(folder, "1", "10");
  const auto workload = folder.Write("w.csv", Workload("a,0,toy,4,10\nb,0,toy,4,10\n"));
  ManualClock clock;
  const auto run = RunArena({.profiles = folder.path(),
                             .workload = workload,
                             .policy = "fifo",
                             .nodes = 1,
                             .gpus_per_node = 4,
                             .most_jobs = 1},
                            clock);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(run.error().message, HasSubstr("2 jobs"));
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

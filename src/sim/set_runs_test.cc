#include "sim/set_runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/tree.h"
#include "model/document_writer.h"
#include "sim/jobs/generate.h"

namespace muster::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const SetWish kPollux = {.policies = {"tiresias", "muster"},
                         .seeds = 2,
                         .profiles = "pollux",
                         .workload = "pollux/workload.csv"};
const SetWish kOpenb = {.set = LabSet::kOpenb,
                        .policies = {"fgd"},
                        .nodes = "openb/nodes.csv",
                        .pods = "openb/pods.csv"};

SetWish SomeJobs() {
  SetWish wish{.set = LabSet::kJobs, .policies = {"muster", "srtf"}, .workload = "made"};
  wish.jobs = *GenerateJobs({.jobs = 40, .seed = 3});
  return wish;
}

Result<SetRuns> Play(const SetWish& wish, const std::function<Result<void>(double)>& pass) {
  ManualClock clock;
  return PlaySet(wish, TraceFiles::Within(SourceTree() + "/examples/lab"), "1.2.3", clock, pass);
}

Result<void> Go(double /*share*/) { return {}; }

TEST(SetRuns, EveryPolicyIsPlayedWithEverySeedAndDrawn) {
  std::vector<double> shares;
  const auto played = Play(kPollux, [&](double share) -> Result<void> {
    shares.push_back(share);
    return {};
  });
  ASSERT_TRUE(played) << played.error().message;
  std::vector<std::string> runs;
  for (const auto& run : played->runs) {
    runs.push_back(run.Find("policy")->text + " " + run.Find("seed")->text);
    EXPECT_EQ(run.Find("jobs")->children.size(), 3U);
  }
  EXPECT_THAT(runs, ElementsAre("tiresias 0", "tiresias 1", "muster 0", "muster 1"));
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_GT(shares.back(), 0.75);
  EXPECT_LE(shares.back(), 1);
  EXPECT_THAT(played->page, HasSubstr("pollux/workload.csv"));
}

TEST(SetRuns, PodsArePlacedAndDrawn) {
  const auto played = Play(kOpenb, Go);
  ASSERT_TRUE(played) << played.error().message;
  ASSERT_EQ(played->runs.size(), 1U);
  EXPECT_NE(played->runs[0].Find("gpu_allocation_pct"), nullptr);
  EXPECT_THAT(played->page, HasSubstr("openb/pods.csv"));
}

TEST(SetRuns, RigidJobsArePlayedUnderRivalsAndDrawn) {
  const auto played = Play(SomeJobs(), Go);
  ASSERT_TRUE(played) << played.error().message;
  ASSERT_EQ(played->runs.size(), 2U);
  EXPECT_EQ(played->runs[1].Find("policy")->text, "srtf");
  for (const auto& run : played->runs) EXPECT_EQ(run.Find("jobs")->children.size(), 40U);
  EXPECT_THAT(played->page, HasSubstr("srtf"));
}

TEST(SetRuns, WhoKnowsHowLongJobsTakeIsMarked) {
  const auto played = Play(SomeJobs(), Go);
  ASSERT_TRUE(played);
  EXPECT_EQ(played->runs[0].Find("oracle"), nullptr);
  EXPECT_EQ(played->runs[1].Find("oracle")->text, "true");
  for (const auto* name : {"srtf", "gavel-makespan", "optimus-oracle"}) {
    const auto run = ArenaNode(name, 0, "w", {});
    EXPECT_NE(run.Find("oracle"), nullptr) << name;
  }
  EXPECT_EQ(ArenaNode("gavel-max-min", 0, "w", {}).Find("oracle"), nullptr);
}

TEST(SetRuns, MusterDecidesAsThePolicyFileSaysInEverySet) {
  struct Case {
    SetWish wish;
    const char* settings;
    const char* figure;
  };
  auto jobs = SomeJobs(), pollux = kPollux, openb = kOpenb;
  jobs.policies = openb.policies = {"muster"};
  jobs.node_count = pollux.node_count = pollux.gpus_per_node = 2;
  openb.seeds = 10;
  for (const auto& [wish, settings, figure] :
       {Case{jobs, "reclaim: off", "mean_wait_s"}, Case{pollux, "grow: off", "mean_jct_s"},
        Case{openb, "place_by_worth: off", "gpu_allocation_pct"}}) {
    auto set = wish;
    set.policy_file = fmt::format("policy: {{{}}}", settings);
    const auto before = Play(wish, Go), after = Play(set, Go);
    ASSERT_TRUE(before && after) << settings;
    std::size_t changed = 0;
    for (std::size_t i = 0; i < after->runs.size(); ++i) {
      const auto was = before->runs[i].Find(figure)->text, is = after->runs[i].Find(figure)->text;
      if (was == is) continue;
      EXPECT_EQ(after->runs[i].Find("policy")->text, "muster");
      ++changed;
    }
    EXPECT_GT(changed, 0U) << settings;
    EXPECT_THAT(after->page, HasSubstr(settings));
    EXPECT_THAT(before->page, Not(HasSubstr(settings)));
  }
}

TEST(SetRuns, SettingsThatAreWrongOrForNobodyAreAMistake) {
  auto wish = kPollux;
  wish.policy_file = "policy: {grw: off}";
  EXPECT_THAT(CheckPolicies(wish).error().message, HasSubstr("grw"));
  wish.policy_file = "policy: {grow: off}";
  EXPECT_TRUE(CheckPolicies(wish));
  wish.policies = {"tiresias"};
  EXPECT_THAT(CheckPolicies(wish).error().message, HasSubstr("not played"));
}

TEST(SetRuns, ItEndsWhenItIsTold) {
  for (const auto& wish : {kPollux, kOpenb, SomeJobs()}) {
    int told = 0;
    const auto played = Play(wish, [&](double) -> Result<void> {
      ++told;
      return Fail(ErrorCode::kUnavailable, "enough");
    });
    EXPECT_EQ(played.error().message, "enough");
    EXPECT_EQ(told, 1);
  }
}

TEST(SetRuns, PoliciesThatAreNotThereOrNamedTwiceAreAMistake) {
  auto wish = kOpenb;
  EXPECT_TRUE(CheckPolicies(wish));
  wish.policies = {"fgd", "tiresias"};
  EXPECT_THAT(CheckPolicies(wish).error().hint, HasSubstr("best-fit"));
  wish.policies = {"fgd", "fgd"};
  EXPECT_THAT(CheckPolicies(wish).error().message, HasSubstr("twice"));
}

}  // namespace
}  // namespace muster::sim

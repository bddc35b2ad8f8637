#include "sim/set_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/tree.h"
#include "model/document_writer.h"

namespace muster::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SetWish kPollux = {.policies = {"tiresias", "muster"},
                         .seeds = 2,
                         .profiles = "pollux",
                         .workload = "pollux/workload.csv"};
const SetWish kOpenb = {
    .openb = true, .policies = {"fgd"}, .nodes = "openb/nodes.csv", .pods = "openb/pods.csv"};

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

TEST(SetRuns, ItEndsWhenItIsTold) {
  for (const auto& wish : {kPollux, kOpenb}) {
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

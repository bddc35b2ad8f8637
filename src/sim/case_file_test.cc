#include "sim/case_file.h"

#include <gmock/gmock.h>

#include "sim/case_run.h"

namespace muster::sim {
namespace {

using testing::HasSubstr;

std::string MessageOf(const std::string& text) {
  const auto parsed = ParseCase("a.case", text);
  return parsed ? "" : parsed.error().message;
}

TEST(CaseFile, ReadsAStoryInOrder) {
  const auto parsed = ParseCase("a.case",
                                "# a comment\n"
                                "rule grow\n"
                                "node a b gpus=8 type=H100 nvlink=4 numa=2 # another\n"
                                "job x workers=2..4 gpus=2 running=a:0-1,b:2+4\n"
                                "cycle\n"
                                "advance 1h30m\n"
                                "expect x running=2 gpus=a:0-1,b:2+4\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->rule, "grow");
  ASSERT_EQ(parsed->steps.size(), 6U);
  const auto& node = std::get<CaseNode>(parsed->steps[1].act).spec;
  EXPECT_EQ(node.name, "b");
  EXPECT_EQ(node.gpus[7].nvlink_island, 1);
  EXPECT_EQ(node.gpus[3].numa, 0);
  const auto& job = std::get<CaseJob>(parsed->steps[2].act);
  EXPECT_EQ(job.spec.queue, "main");
  EXPECT_EQ(job.spec.groups[0].minimum, 2);
  EXPECT_EQ(job.spec.roles[0].count, 4);
  EXPECT_EQ(job.running[1].devices, 0b10100U);
  EXPECT_EQ(std::get<CaseAdvance>(parsed->steps[4].act).ms, 90 * 60 * 1000);
}

TEST(CaseFile, ReadsQueuesAsATree) {
  const auto parsed = ParseCase("a.case",
                                "rule limits\n"
                                "queue org quota=8,H100:2 limit=memory:1Gi\n"
                                "queue org/team quota=unlimited weight=2.5 build.types=T4\n"
                                "job x\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto& queues = parsed->setup.queues;
  EXPECT_EQ(queues[0].quota.at("H100"), 2000);
  EXPECT_EQ(queues[0].limit.at("memory"), 1LL << 30);
  EXPECT_EQ(queues[1].parent, "org");
  EXPECT_EQ(queues[1].general_weight_milli, 2500);
  EXPECT_EQ(queues[1].kinds.at(model::JobKind::kBuild).confinement.gpu_types,
            std::vector<std::string>{"T4"});
  EXPECT_EQ(std::get<CaseJob>(parsed->steps[0].act).spec.queue, "org/team");
}

TEST(CaseFile, SaysWhereAMistakeIsAndWhatIsAllowed) {
  EXPECT_THAT(MessageOf("rule nonsense\n"), HasSubstr("a.case:1: no rule is called `nonsense`"));
  EXPECT_THAT(MessageOf("rule nonsense\n"), HasSubstr("allowed: shrink, consolidate"));
  EXPECT_THAT(MessageOf("rule grow\n\nnoed a\n"),
              HasSubstr("a.case:3: no line begins with `noed`"));
  EXPECT_THAT(MessageOf("rule grow\njob x gpuz=2\n"),
              HasSubstr("a.case:2: `gpuz=` means nothing here; allowed: "));
  EXPECT_THAT(MessageOf("rule grow\njob x workers=4..2\n"), HasSubstr("2..8"));
  EXPECT_THAT(MessageOf("rule grow\njob x fxied\n"), HasSubstr("`fxied` means nothing here"));
  EXPECT_THAT(MessageOf("rule grow\nadvance soon\n"), HasSubstr("a duration such as 90s"));
  EXPECT_THAT(MessageOf("rule grow\njob x running=a:9-1\n"), HasSubstr("`a:9-1` names no GPUs"));
  EXPECT_THAT(MessageOf("rule grow\njob x gpus=1.5\n"), HasSubstr("whole GPUs or a share"));
  EXPECT_THAT(MessageOf("rule grow\nexpect x link=wifi\n"),
              HasSubstr("allowed: nvlink, switch, socket, across"));
  EXPECT_THAT(MessageOf("node a\n"), HasSubstr("no line says which rule"));
}

TEST(CaseFile, ReportsAllMistakesAtOnce) {
  const auto message = MessageOf("rule grow\nqueue a\nqueue b\njob x\njob y queue=c\nnode\n");
  EXPECT_THAT(message, HasSubstr("a.case:4: the job `x` needs a queue for jobs; allowed: a, b"));
  EXPECT_THAT(message, HasSubstr("a.case:5: the job `y`"));
  EXPECT_THAT(message, HasSubstr("a.case:6: `node` needs one name or several"));
}

Result<CaseResult> RunText(const std::string& text) {
  const auto parsed = ParseCase("a.case", text);
  if (!parsed) return tl::unexpected(parsed.error());
  return RunCase(*parsed);
}

TEST(CaseRun, FailsWhereAnExpectationDoesNotHold) {
  const auto result = RunText(
      "rule grow\nnode a gpus=2\njob x workers=1..2\ncycle\n"
      "expect x running=1\n");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->differences, testing::ElementsAre("line 5: x: running 2, expected 1"));
}

TEST(CaseRun, FailsACaseThatDoesNotNeedItsRule) {
  const auto result = RunText("rule reclaim\nnode a gpus=2\njob x\ncycle\nexpect x running\n");
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->differences.size(), 1U);
  EXPECT_THAT(result->differences[0], HasSubstr("does not prove it"));
}

TEST(CaseRun, RefusesAStoryThatCannotBePlayed) {
  const auto nowhere = RunText("rule grow\njob x running=b\n");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("a.case:2: there is no node b"));
  const auto taken = RunText("rule grow\nnode a gpus=2\njob x running=a:0\njob y running=a:0\n");
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("a.case:4: y runs on a GPU that somebody else has"));
  const auto gone = RunText("rule grow\nnode a gpus=2\nfinish x\n");
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, HasSubstr("a.case:3: there is no job x"));
}

}  // namespace
}  // namespace muster::sim

#include "sim/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/temp_folder.h"
#include "base/tree.h"
#include "sim/report/folder.h"

namespace muster::sim::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Lab() { return SourceTree() + "/examples/lab"; }

ArenaRuns Arena(const std::string& policy, std::uint64_t seeds) {
  ManualClock clock;
  ArenaRuns runs{policy, {}};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    auto run = RunArena({.profiles = Lab() + "/pollux",
                         .workload = Lab() + "/pollux/workload.csv",
                         .policy = policy,
                         .seed = seed},
                        clock);
    EXPECT_TRUE(run) << policy;
    if (run) runs.runs.push_back(*std::move(run));
  }
  return runs;
}

OpenbRuns Openb(const std::string& policy, std::uint64_t seeds) {
  ManualClock clock;
  OpenbRuns runs{policy, {}};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto run =
        RunOpenb({Lab() + "/openb/nodes.csv", Lab() + "/openb/pods.csv", policy, seed}, clock);
    EXPECT_TRUE(run) << policy;
    if (run) runs.runs.push_back(*run);
  }
  return runs;
}

std::vector<std::string> Names(const std::vector<File>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.name);
  return names;
}

TEST(ArenaReport, HasThePageAndItsPlotsWithWhatItWasMadeFrom) {
  const Origin origin{"1.2.3", {{"workload", "a<b.csv"}}, 0};
  const auto files = ArenaReport(origin, {Arena("tiresias", 1), Arena("pollux", 1)});
  EXPECT_THAT(Names(files), ElementsAre("index.html", "jct.svg", "utilisation.svg",
                                        "gantt-tiresias.svg", "gantt-pollux.svg"));
  for (const char* said :
       {"<caption>", "1.2.3", "a&lt;b.csv", "<dt>seed</dt><dd>0</dd>", "tiresias, pollux",
        "64 GPUs", "alone (toy)", "href=\"gantt-pollux.svg\"", "<strong>"}) {
    EXPECT_THAT(files[0].text, HasSubstr(said));
  }
  EXPECT_THAT(files[0].text, Not(HasSubstr("http")));
}

TEST(ArenaReport, IsTheSameForTheSameRunsWhateverTheyTook) {
  auto runs = Arena("tiresias", 2);
  const auto one = ArenaReport({"1", {}, 0}, {runs});
  runs.runs[0].wall_s = 99;
  runs.runs[1].policy_ms_p50 = 99;
  const auto two = ArenaReport({"1", {}, 0}, {runs});
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].text, two[i].text) << one[i].name;
  EXPECT_THAT(one[0].text, HasSubstr("0 to 1"));
  EXPECT_THAT(one[0].text, HasSubstr("of seed 0"));
}

TEST(ArenaReport, NamesOfJobsAreTextAndNothingElse) {
  auto runs = Arena("tiresias", 1);
  runs.runs[0].jobs[0].name = "</svg><script>alert(1)</script>";
  runs.runs[0].jobs[0].application = "\x01\"'>";
  for (const auto& file : ArenaReport({"1", {}, 0}, {runs})) {
    EXPECT_THAT(file.text, Not(HasSubstr("<script"))) << file.name;
    EXPECT_THAT(file.text, Not(HasSubstr("\x01"))) << file.name;
  }
}

TEST(JobsReport, HasTheWaitsAndWhoHeldGpusWhen) {
  ManualClock clock;
  std::vector<JobsRun> runs;
  for (const char* policy : {"fifo", "srtf", "tiresias"}) {
    auto run = RunJobs(
        {.workload = Lab() + "/jobs.csv", .policy = policy, .nodes = 2, .over_time = true}, clock);
    ASSERT_TRUE(run);
    double held = 0;
    for (const auto& job : run->jobs) {
      for (const auto& one : job.stretches)
        held += (one.end_s - one.start_s) * static_cast<double>(one.gpus);
      EXPECT_NEAR(job.stretches.front().start_s - job.submit_s, job.wait_s, 1e-6);
      EXPECT_NEAR(job.stretches.back().end_s - job.submit_s, job.jct_s, 1e-6);
    }
    EXPECT_NEAR(100 * held / (16 * run->makespan_s), run->utilisation_pct, 1e-6);
    EXPECT_EQ(run->gpus_in_use.back().gpus, 0);
    runs.push_back({policy, *std::move(run)});
  }
  const auto files = JobsReport({"1.2.3", {{"workload", "jobs.csv"}}, 0}, runs);
  EXPECT_THAT(Names(files), ElementsAre("index.html", "jct.svg", "utilisation.svg",
                                        "gantt-fifo.svg", "gantt-srtf.svg", "gantt-tiresias.svg"));
  for (const char* said : {"mean wait", "preemptions", "2 nodes of 8 GPUs", "Mean JCT by queue",
                           "team-3", "1.2.3", "<strong>", "srtf (oracle)", "without oracles"}) {
    EXPECT_THAT(files[0].text, HasSubstr(said));
  }
}

TEST(BestOf, OraclesDoNotCount) {
  const std::vector<Rated> all = {{"fifo", 9, "9 h"},
                                  {"srtf (oracle)", 1, "1 h"},
                                  {"muster", 3, "3 h"},
                                  {"tiresias", 3.01, "3 h"}};
  EXPECT_THAT(BestOf(all, true), ElementsAre(false, false, true, true));
  EXPECT_THAT(BestOf({all[0], all[1]}, true), ElementsAre(false, false)) << "nothing to compare";
}

TEST(OpenbReport, ShowsTheSpreadWhereThereAreSeveralSeeds) {
  const auto one = OpenbReport({"1", {}, 5}, {Openb("fgd", 1)});
  EXPECT_THAT(Names(one), ElementsAre("index.html", "allocation.svg", "fragmentation.svg"));
  EXPECT_THAT(one[0].text, Not(HasSubstr("range</th>")));
  const auto several = OpenbReport({"1", {}, 5}, {Openb("fgd", 3), Openb("random", 3)});
  EXPECT_THAT(Names(several), ElementsAre("index.html", "allocation.svg", "allocation-seeds.svg",
                                          "fragmentation.svg"));
  EXPECT_THAT(several[0].text, HasSubstr("range</th>"));
  EXPECT_THAT(several[0].text, HasSubstr("5 to 7"));
}

class ReportFolder : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return folder_ / name; }

  TempFolder folder_;
};

TEST_F(ReportFolder, IsMadeAndOnlyWrittenOverWhenThatIsWanted) {
  const auto first = ArenaReport({"1", {}, 0}, {Arena("tiresias", 1)});
  const auto place = In("deep/er");
  ASSERT_TRUE(WriteReport(place, first, false));
  EXPECT_EQ(ReadFile(place + "/index.html"), first[0].text);
  const auto refused = WriteReport(place, first, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().hint, HasSubstr("--yes"));
  std::ofstream(place + "/notes.txt") << "mine";
  ASSERT_TRUE(WriteReport(place, OpenbReport({"1", {}, 0}, {Openb("fgd", 1)}), true));
  EXPECT_FALSE(fs::exists(place + "/gantt-tiresias.svg")) << "a plot of the old report";
  EXPECT_TRUE(fs::exists(place + "/allocation.svg"));
  EXPECT_EQ(ReadFile(place + "/notes.txt"), "mine");
}

TEST_F(ReportFolder, OfAnotherKindIsNeverTaken) {
  std::ofstream(In("index.html")) << "<html>my home page</html>";
  for (const bool over : {false, true}) {
    const auto refused = CheckFolder(folder_.path(), over);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
    EXPECT_THAT(refused.error().hint, Not(HasSubstr("--yes")));
    EXPECT_FALSE(CheckFolder(In("index.html"), over)) << "a file is no folder";
  }
  EXPECT_FALSE(CheckFolder("", true));
  EXPECT_TRUE(CheckFolder(In("new/one"), false));
}

TEST(PlotsOf, NamesNothingOutsideOfTheFolder) {
  const std::string page =
      "<meta name=\"generator\" content=\"muster sim report\"/>\n"
      "<meta name=\"muster-report-files\" content=\"jct.svg ../x.svg /etc/passwd a.txt .svg "
      "b.svg\"/>";
  EXPECT_THAT(PlotsOf(page), ElementsAre("jct.svg", ".svg", "b.svg"));
  EXPECT_THAT(PlotsOf("<html/>"), ElementsAre());
}

}  // namespace
}  // namespace muster::sim::report

#include "cli/progress.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

Json Job(const char* phase) {
  return {{"id", "7"},
          {"name", "resnet"},
          {"created_at", "1970-01-01T00:01:40.000Z"},
          {"status", {{"phase", phase}}}};
}

TEST(Progress, AJobWithATimeLimitHasABarOfTheTimeThatIsUsedUp) {
  auto job = Job("running");
  job["spec"]["limits"]["time"] = "10m";
  job["status"]["ran_ms"] = 150'000;
  EXPECT_EQ(ProgressLine(job, PaceOf(job, {}, 0), "waited 3 s", 80),
            "[##--------] job 7 resnet: running, at most 7 min left; waited 3 s");
  job["status"]["ran_ms"] = 700'000;  // it is being stopped
  EXPECT_EQ(ProgressLine(job, PaceOf(job, {}, 0), "waited 3 s", 80),
            "[##########] job 7 resnet: running, at most 0 s left; waited 3 s");
  job["status"]["phase"] = "waiting";
  EXPECT_EQ(ProgressLine(job, PaceOf(job, {}, 0), "waited 3 s; no room", 80),
            "job 7 resnet: waiting; waited 3 s; no room");
}

TEST(Progress, AShareHasABarAndTheTimeLeftOnceThatCanBeTold) {
  EXPECT_EQ(ShareLine("pollux seed 3", 0.05, 500, 80), "[----------] pollux seed 3: 5 %");
  EXPECT_EQ(ShareLine("pollux seed 3", 0.25, 10'000, 80),
            "[##--------] pollux seed 3: 25 %, about 30 s left");
  EXPECT_EQ(ShareLine("pollux seed 3", 0.25, 10'000, 30), "pollux seed 3: 25 %, about…");
  EXPECT_EQ(ShareLine("replaying", 1, 10'000, 80), "[##########] replaying: 100 %");
}

TEST(Progress, AnArrayHasABarOfItsTasksAndAnEstimateOfTheRest) {
  auto job = Job("running");
  job["status"].update({{"tasks", 200}, {"succeeded", 0}});
  EXPECT_EQ(ProgressLine(job, PaceOf(job, {}, 100'000), "waited 3 s", 80),
            "[----------] job 7 resnet: 0 of 200 tasks done; waited 3 s");
  job["status"].update({{"succeeded", 40}, {"failed", 8}, {"cancelled", 2}});
  // Since 1 s ago 30 more: the other 150 take 5 s.
  EXPECT_EQ(PaceOf(job, {999'000, 20}, 1'000'000).left_ms, 5'000);
  // None was seen to end: 50 in the 100 s since it was sent.
  EXPECT_EQ(PaceOf(job, {199'000, 50}, 200'000).left_ms, 300'000);
  EXPECT_EQ(
      ProgressLine(job, PaceOf(job, {199'000, 50}, 200'000), "waited 1 s", 100),
      "[#####---------------] job 7 resnet: 50 of 200 tasks done, about 5 min left; waited 1 s");
}

TEST(Progress, NoLineIsWiderThanTheWindowAndALongNameHidesNothing) {
  auto job = Job("running");
  job["name"] = std::string(60, 'x');
  job["spec"]["limits"]["time"] = "10m";
  for (std::size_t columns = 0; columns < 120; ++columns) {
    const auto line = ProgressLine(job, PaceOf(job, {}, 0), "waited 3 s", columns);
    EXPECT_LE(Columns(line), columns) << line;
    EXPECT_EQ(line.find('[') == 0, columns >= 40) << line;
    if (columns < 70) continue;
    EXPECT_NE(line.find("at most 10 min left"), std::string::npos) << columns << line;
  }
}

}  // namespace
}  // namespace muster::cli

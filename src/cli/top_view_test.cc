#include "cli/top_view.h"

#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

TopJob Job(std::int64_t id, const std::string& name, const char* phase) {
  TopJob job;
  job.id = id;
  job.name = name;
  job.user = "ana";
  job.queue = "vision/detect";
  job.phase = phase;
  job.gpus = "2";
  return job;
}

std::vector<std::string> Lines(const Screen& screen) {
  std::vector<std::string> lines;
  std::istringstream text(screen.Text());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

class TopViewTest : public testing::Test {
 protected:
  TopViewTest() {
    model_.version = "0.1.0";
    model_.revision = 42;
    model_.nodes = model_.nodes_ready = 2;
    model_.gpus = {{"H100", 8, 4, false}, {"virtual", 2, 0, true}};
    for (int id = 1; id <= 40; ++id) {
      model_.Put(Job(id, "job-" + std::to_string(id), id <= 3 ? "running" : "waiting"));
    }
  }
  TopModel model_;
  TopFrame frame_;
};

TEST_F(TopViewTest, AFrameOfEightyByTwentyFour) {
  Screen screen(24, 80, false);
  DrawTop(model_, frame_, screen);
  const auto lines = Lines(screen);
  ASSERT_EQ(lines.size(), 24U);
  EXPECT_TRUE(lines[0].starts_with("muster top  musterd 0.1.0 rev 42  live")) << lines[0];
  EXPECT_EQ(lines[1], "H100       [############............] 4 held, 4 free, 8 GPUs");
  EXPECT_EQ(lines[2], "virtual    [........................] 0 held, 2 free, 2 GPUs (virtual)");
  EXPECT_EQ(lines[3], "nodes 2/2   jobs  3 running  37 waiting");
  EXPECT_EQ(lines[4], "ID NAME   USER QUEUE         PHASEv  GPUS RAN NOTE");
  EXPECT_TRUE(lines[5].starts_with("1  job-1  ana  vision/detect running 2    0s")) << lines[5];
  EXPECT_TRUE(lines[23].starts_with("s sort")) << lines[23];
  for (const auto& line : lines) EXPECT_LE(line.size(), 80U);
}

TEST_F(TopViewTest, TheTableScrollsWithTheSelection) {
  Screen screen(24, 80, false);
  model_.Move(39, 0);
  DrawTop(model_, frame_, screen);
  const auto lines = Lines(screen);
  EXPECT_TRUE(lines[22].starts_with("40 ")) << lines[22];
  EXPECT_EQ(TableRows(model_, frame_, 24), 18);
}

TEST_F(TopViewTest, APaneTakesTheLowerHalfAndALogShowsItsEnd) {
  Screen screen(24, 80, false);
  frame_.pane.title = "output of 1 job-1";
  frame_.pane.end = true;
  for (int i = 0; i < 50; ++i) frame_.pane.lines.push_back("line " + std::to_string(i));
  DrawTop(model_, frame_, screen);
  const auto lines = Lines(screen);
  EXPECT_TRUE(lines[14].starts_with("-- output of 1 job-1 ---")) << lines[14];
  EXPECT_EQ(lines[22], "line 49");
}

TEST_F(TopViewTest, ANoteThatIsTooLongIsCutWithAnEllipsis) {
  TopJob job;
  job.id = 1;
  job.name = "job-1";
  job.phase = "running";
  job.note = "queue vision/detection has used its fair share";
  model_.Put(job);
  Screen narrow(24, 80, false);
  DrawTop(model_, frame_, narrow);
  EXPECT_TRUE(Lines(narrow)[5].ends_with("queue vision/detection has used i…")) << Lines(narrow)[5];
  Screen wide(24, 200, false);
  DrawTop(model_, frame_, wide);
  EXPECT_TRUE(Lines(wide)[5].ends_with(job.note)) << Lines(wide)[5];
}

TEST_F(TopViewTest, OtherColumnsMakeRoomForTheNote) {
  auto job = Job(1234567, "a-rather-long-name-of-a-job", "suspended");
  job.user = "somebody.else";
  job.queue = "vision/detection/night";
  job.gpus = "128..256";
  job.note = "queue vision/detection/night has used its fair share";
  model_.Put(job);
  model_.Filter("1234567");
  Screen screen(24, 80, false);
  DrawTop(model_, frame_, screen);
  const auto lines = Lines(screen);
  EXPECT_GE(80 - static_cast<int>(lines[4].find("NOTE")), 26) << lines[4];
  EXPECT_NE(lines[5].find("suspended 128..256"), std::string::npos) << lines[5];
}

TEST_F(TopViewTest, AWhyPaneBreaksBetweenWordsAndScrollsNoFurtherThanItsEnd) {
  frame_.pane.title = "why 4 job-4";
  frame_.pane.indent = 9;
  for (int i = 0; i < 20; ++i) {
    frame_.pane.lines.push_back("held by  queue vision/detection: " + std::to_string(i) +
                                " GPUs, which it may keep because they are within its quota");
  }
  Screen screen(24, 80, false);
  DrawTop(model_, frame_, screen);
  auto lines = Lines(screen);
  EXPECT_TRUE(lines[15].ends_with("because they are")) << lines[15];
  EXPECT_EQ(lines[16], "         within its quota");
  EXPECT_NE(lines[14].find("1-8 of 40, [ ] scroll"), std::string::npos) << lines[14];
  frame_.pane.back = 1000;
  DrawTop(model_, frame_, screen);
  EXPECT_EQ(frame_.pane.back, 32U);
  lines = Lines(screen);
  EXPECT_TRUE(lines[21].starts_with("held by  queue vision/detection: 19")) << lines[21];
}

TEST_F(TopViewTest, SmallAndLargeScreensAreDrawnToo) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {5, 20}, {10, 40}, {60, 200}}) {
    Screen screen(rows, cols, true);
    frame_.help = rows == 10;
    DrawTop(model_, frame_, screen);
    EXPECT_EQ(Lines(screen).size(), static_cast<std::size_t>(rows));
  }
}

}  // namespace
}  // namespace muster::cli

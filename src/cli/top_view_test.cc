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
  EXPECT_EQ(lines[4], "ID     NAME            USER     QUEUE       PHASEv    GPUS RAN        NOTE");
  EXPECT_TRUE(lines[5].starts_with("1      job-1           ana      vision/dete running   2"))
      << lines[5];
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

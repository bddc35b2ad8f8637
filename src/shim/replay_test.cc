#include "shim/replay.h"

#include <gtest/gtest.h>

namespace muster::shim {
namespace {

TEST(Replay, TellsAllWhileThereIsRoom) {
  Replay replay(8);
  EXPECT_EQ(replay.Text(), "");
  replay.Keep("ab\n");
  replay.Keep("cd\nef");
  EXPECT_EQ(replay.Text(), "ab\ncd\nef");
}

TEST(Replay, TellsTheLastWholeLinesWhenTheFirstAreOverwritten) {
  Replay replay(8);
  for (const char* bytes : {"ab\ncd\nef", "\ngh\n$ "}) replay.Keep(bytes);
  EXPECT_EQ(replay.Text(), "gh\n$ ");
  replay.Keep("0123456789ABC\nxyz");
  EXPECT_EQ(replay.Text(), "xyz");
  replay.Keep("0123456789");
  EXPECT_EQ(replay.Text(), "23456789") << "no line at all is better than nothing";
}

TEST(Replay, AsksTheTerminalNothing) {
  Replay replay(64);
  replay.Keep("$ \033[6");
  replay.Keep("nvi\033]11;?\007\n");
  EXPECT_EQ(replay.Text(), "$ vi\n");
}

}  // namespace
}  // namespace muster::shim

#include "cli/screen.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(Screen, WritesEverythingOnceAndThenOnlyWhatChanged) {
  Screen screen(2, 10, false);
  screen.Put(0, 0, "running 12");
  EXPECT_NE(screen.Draw().find("\033[2J"), std::string::npos);
  EXPECT_EQ(screen.Draw(), "");
  screen.Clear();
  screen.Put(0, 0, "running 13");
  EXPECT_EQ(screen.Draw(), "\033[1;10H3");
}

TEST(Screen, ANewSizeWritesEverythingAgain) {
  Screen screen(1, 3, false);
  screen.Put(0, 0, "abc");
  screen.Draw();
  screen.Resize(1, 5);
  screen.Put(0, 0, "abc");
  EXPECT_EQ(screen.Draw(), "\033[0m\033[H\033[2J\033[1;1Habc");
}

TEST(Screen, TextIsClippedAtTheEdgeAndAtAnEnd) {
  Screen screen(2, 5, false);
  EXPECT_EQ(screen.Put(0, 3, "abcdef"), 5);
  screen.Put(1, 0, "abcdef", Ink::kPlain, 3);
  screen.Put(7, 0, "nowhere");
  EXPECT_EQ(screen.Text(), "   ab\nabc\n");
}

TEST(Screen, WideCharactersTakeTwoCellsAndAreNeverCut) {
  Screen screen(1, 4, false);
  EXPECT_EQ(screen.Put(0, 0, "a\u6f22\u5b57"), 3);
  EXPECT_EQ(screen.Text(), "a\u6f22\n");
}

TEST(Screen, NothingThatIsShownCanMoveTheCursor) {
  Screen screen(1, 12, false);
  screen.Put(0, 0, "a\033[2Jb\xff\n");
  EXPECT_EQ(screen.Text(), "a?[2Jb??\n");
}

TEST(Screen, WithoutColourInkIsOnlyBoldDimOrInverse) {
  Screen plain(1, 2, false), coloured(1, 2, true);
  plain.Put(0, 0, "x", Ink::kRed);
  coloured.Put(0, 0, "x", Ink::kRed);
  EXPECT_EQ(plain.Draw().find("31m"), std::string::npos);
  EXPECT_NE(coloured.Draw().find("\033[0;31m"), std::string::npos);
}

TEST(PlainLine, LeavesOutWhatWouldDrawAndKeepsWhatWasDrawnLast) {
  EXPECT_EQ(PlainLine("\033[31mred\033[0m text"), "red text");
  EXPECT_EQ(PlainLine("10%\r20%"), "20%");
  EXPECT_EQ(PlainLine("\033]0;title\abody\r"), "body");
  EXPECT_EQ(PlainLine("a\tb"), "a       b");
}

}  // namespace
}  // namespace muster::cli

#include "cli/text.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(Text, NothingThatMovesTheCursorOrTurnsLettersRoundComesThrough) {
  EXPECT_EQ(Clean("a\x1b[31mb\rc\x7f"), "a\\x1b[31mb\\x0dc\\x7f");
  EXPECT_EQ(Clean("\xC2\x9B"
                  "2J"),
            "\\x9b2J");  // CSI in one character
  EXPECT_EQ(Clean("abc\xE2\x80\xAE"
                  "def"),
            "abc\\u202edef");  // right to left
  EXPECT_EQ(Clean("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(Clean("a\nb", Breaks::kKeep), "a\nb");
}

TEST(Text, BytesThatAreNoUtf8AreShownAsTheyAre) {
  EXPECT_EQ(Clean("a\xFF\xC3"), "a\\xff\\xc3");
  EXPECT_EQ(Clean("\xC0\x9B"), "\\xc0\\x9b");  // overlong
  EXPECT_EQ(Clean("größe 機械 👍"), "größe 機械 👍");
}

TEST(Text, JsonSaysTheSameWithEscapes) {
  EXPECT_EQ(SafeJson("{\"a\": \"b\xC2\x9B\xE2\x80\xAE\x7F\"}\n"),
            "{\"a\": \"b\\u009b\\u202e\\u007f\"}\n");
  EXPECT_EQ(SafeJson("[\"größe 機 👍\"]"), "[\"größe 機 👍\"]");
}

TEST(Text, WidthsAreColumnsOfTheScreen) {
  EXPECT_EQ(Columns("größe"), 5U);
  EXPECT_EQ(Columns("機械"), 4U);
  EXPECT_EQ(Columns("e\xCC\x81"), 1U);
  EXPECT_EQ(Columns("👍"), 2U);
  EXPECT_EQ(Pad("機", 4), "機  ");
}

TEST(Text, WhatIsTooLongEndsWithAnEllipsisAndNeverInTheMiddleOfACharacter) {
  EXPECT_EQ(Cut("waiting", 7), "waiting");
  EXPECT_EQ(Cut("waiting", 4), "wai…");
  EXPECT_EQ(Cut("機械学習", 4), "機…");
  EXPECT_EQ(Cut("機械学習", 5), "機械…");
  EXPECT_EQ(Cut("ab", 1), "…");
  EXPECT_EQ(Cut("ab", 0), "");
}

TEST(Text, OneIsNotMany) {
  EXPECT_EQ(Count(1, "worker"), "1 worker");
  EXPECT_EQ(Count(0, "worker"), "0 workers");
  EXPECT_EQ(Count(2, "process", "processes"), "2 processes");
}

TEST(Text, LinesBreakBetweenWordsAndAreIndented) {
  EXPECT_EQ(Wrap("held by  queue vision: 4 GPUs, within its quota", 28, 9),
            (std::vector<std::string>{"held by  queue vision: 4", "         GPUs, within its",
                                      "         quota"}));
  EXPECT_EQ(Wrap("abcdefghijkl", 5, 0), (std::vector<std::string>{"abcde", "fghij", "kl"}));
  EXPECT_EQ(Wrap("", 5, 0), (std::vector<std::string>{""}));
  EXPECT_EQ(Wrap("機械学習", 4, 0), (std::vector<std::string>{"機械", "学習"}));
  for (const auto& line : Wrap(std::string(300, 'x') + " y z", 20, 9)) {
    EXPECT_LE(Columns(line), 20U);
  }
}

}  // namespace
}  // namespace muster::cli

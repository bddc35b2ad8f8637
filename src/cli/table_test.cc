#include "cli/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/text.h"

namespace muster::cli {
namespace {

const std::vector<std::string> kHead = {"ID", "NAME", "PHASE", "GPUS", "NOTE"};
const Rows kRows = {
    {"1", "größe", "running", "4", ""},
    {"12", "resnet-of-somebody", "waiting", "8", "no room; queue vision holds all of its quota"}};

std::size_t Widest(const std::string& table) {
  std::istringstream lines(table);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, Columns(line));
  return widest;
}

TEST(Table, WithoutAScreenItIsAsWideAsItNeedsAndHasNoSpacesAtTheEnd) {
  EXPECT_EQ(LayOut({"ID", "NAME", "X"}, {{"1", "größe", ""}, {"10", "a", "b"}}, {}),
            "ID  NAME   X\n1   größe\n10  a      b\n");
}

TEST(Table, ANoteIsCutBeforeAColumnIsLeftOut) {
  const auto table = LayOut(kHead, kRows, {60, false});
  EXPECT_EQ(Widest(table), 60U);
  EXPECT_NE(table.find("GPUS"), std::string::npos);
  EXPECT_NE(table.find("no room; queue vi"), std::string::npos);
  EXPECT_NE(table.find("…"), std::string::npos);
}

TEST(Table, ColumnsAreLeftOutInTheOrderGivenAndElseFromTheRight) {
  const auto named = LayOut(kHead, kRows, {50, false}, {"GPUS", "PHASE"});
  EXPECT_EQ(named.find("GPUS"), std::string::npos);
  EXPECT_NE(named.find("NOTE"), std::string::npos);
  EXPECT_LE(Widest(named), 50U);
  const auto right = LayOut(kHead, kRows, {40, false});
  EXPECT_EQ(right.find("NOTE"), std::string::npos);
  EXPECT_NE(right.find("PHASE"), std::string::npos);
  EXPECT_LE(Widest(right), 40U);
}

TEST(Table, EvenOneColumnFitsTheNarrowestWindow) {
  EXPECT_LE(Widest(LayOut(kHead, kRows, {5, false})), 5U);
  EXPECT_LE(Widest(LayOut({"NAME"}, {{"a-very-long-name"}}, {6, false})), 6U);
}

TEST(Table, ColumnsThatAreEmptyAreNotThere) {
  EXPECT_EQ(LayOut({"A", ""}, {{"1", ""}}, {}), "A\n1\n");
}

TEST(Table, OnlyStatesHaveColoursAndOnlyWhereAskedFor) {
  const auto colored = LayOut({"NAME", "PHASE"}, {{"running", "running"}}, {80, true});
  EXPECT_EQ(colored, "NAME     PHASE\nrunning  \033[32mrunning\033[0m\n");
  EXPECT_EQ(LayOut(kHead, kRows, {80, false}).find('\033'), std::string::npos);
}

TEST(Table, ACellCannotWriteToTheTerminal) {
  const auto table = LayOut({"NAME", "X"}, {{"a\033[2J\nb", "y"}}, {80, true});
  EXPECT_NE(table.find("a\\x1b[2J\\nb  y"), std::string::npos);
}

}  // namespace
}  // namespace muster::cli

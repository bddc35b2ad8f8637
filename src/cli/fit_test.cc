#include "cli/fit.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(Fit, WhatFitsIsWholeAndTheRestIsCounted) {
  EXPECT_EQ(FitLines("", 5, 80), "");
  EXPECT_EQ(FitLines("HEAD\n1\n2\n3\n", 5, 80), "HEAD\n1\n2\n3\n");
  EXPECT_EQ(FitLines("HEAD\n1\n2\n3\n4\n", 5, 80), "HEAD\n1\n2\n... and 2 more rows\n");
  EXPECT_EQ(FitLines("HEAD\n1\n2\n3\n4\n5\n6", 5, 80), "HEAD\n1\n2\n... and 4 more rows\n");
  EXPECT_EQ(FitLines("1\n2\n3\n", 0, 80), "... and 3 more rows\n");
}

TEST(Fit, ALineThatIsWrappedTakesTheRowsItNeedsAndColoursTakeNone) {
  EXPECT_EQ(FitLines("HEAD\n0123456789\n2\n", 4, 5), "HEAD\n... and 2 more rows\n");
  EXPECT_EQ(FitLines("HEAD\n\033[32m01234\033[0m\n2\n", 4, 5), "HEAD\n\033[32m01234\033[0m\n2\n");
}

}  // namespace
}  // namespace muster::cli

#include "cli/text_plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::cli {
namespace {

TEST(TextPlot, ShowsACurveBetweenItsEnds) {
  EXPECT_EQ(TextPlot({{'*', {{1, 4.0}, {2, 3.0}, {3, 2.0}, {4, 1.0}}}}, {8, 4}),
            "         4 |*\n"
            "           |  *\n"
            "           |     *\n"
            "         1 |       *\n"
            "           +--------\n"
            "            1 step 4\n");
}

TEST(TextPlot, PutsSeveralOnTheSameAxes) {
  EXPECT_EQ(TextPlot({{'a', {{0, 1.0}, {9, 2.0}}}, {'b', {{0, 2.0}, {9, 2.0}}}}, {8, 2}),
            "         2 |b      #\n"
            "         1 |a\n"
            "           +--------\n"
            "            0 step 9\n");
}

TEST(TextPlot, LeavesOutWhatIsNoNumber) {
  EXPECT_EQ(TextPlot({{'*', {{1, std::nan("")}, {2, INFINITY}}}}), "");
  EXPECT_EQ(TextPlot({}), "");
  const auto plot = TextPlot({{'*', {{1, 1.0}, {2, std::nan("")}, {3, 1.0}}}}, {4, 2});
  EXPECT_EQ(plot.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace muster::cli

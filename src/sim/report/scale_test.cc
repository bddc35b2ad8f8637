#include "sim/report/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster::sim::report {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Labels(const Axis& axis) {
  std::vector<std::string> labels;
  for (const auto& tick : axis.ticks) labels.push_back(tick.label);
  return labels;
}

TEST(NumberAxis, TicksAreRoundAndHoldTheData) {
  EXPECT_THAT(Labels(NumberAxis("", 0, 100, 6)), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(Labels(NumberAxis("", 0, 100, 3)), ElementsAre("0", "50", "100"));
  EXPECT_THAT(Labels(NumberAxis("", 93.2, 96.4, 5)), ElementsAre("93", "94", "95", "96", "97"));
  EXPECT_THAT(Labels(NumberAxis("", 0, 0.3, 4)), ElementsAre("0.0", "0.1", "0.2", "0.3"));
  EXPECT_THAT(Labels(NumberAxis("", -7, 12, 6)), ElementsAre("-10", "-5", "0", "5", "10", "15"));
}

TEST(NumberAxis, NeverHasMoreTicksThanRoomAndAlwaysTwo) {
  for (const double to : {1e-6, 0.07, 1.0, 3.0, 99.9, 100.1, 12345.0, 1e12}) {
    for (const int most : {2, 3, 5, 11}) {
      const auto axis = NumberAxis("", 0, to, most);
      EXPECT_LE(axis.ticks.size(), static_cast<std::size_t>(most)) << to << " " << most;
      EXPECT_GE(axis.ticks.size(), 2U) << to << " " << most;
      EXPECT_GE(axis.to, to * (1 - 1e-9));
    }
  }
}

TEST(NumberAxis, OneValueAndNoNumberMakeAnAxisToo) {
  const auto one = NumberAxis("", 95, 95, 5);
  EXPECT_LT(one.from, one.to);
  EXPECT_EQ(one.Share(95), 0);
  const auto none = NumberAxis("", std::nan(""), std::numeric_limits<double>::infinity(), 5);
  EXPECT_LT(none.from, none.to);
}

TEST(TimeAxis, TicksAreWhatClocksHave) {
  const auto minutes = TimeAxis("time", 3700, 6);
  EXPECT_EQ(minutes.title, "time (min)");
  EXPECT_THAT(Labels(minutes), ElementsAre("0", "15", "30", "45", "60"));
  EXPECT_EQ(minutes.to, 3700);
  const auto hours = TimeAxis("time", 80'000, 5);
  EXPECT_EQ(hours.title, "time (h)");
  EXPECT_THAT(Labels(hours), ElementsAre("0", "6", "12", "18"));
  EXPECT_THAT(Labels(TimeAxis("time", 30 * 86400.0, 6)),
              ElementsAre("0", "5", "10", "15", "20", "25", "30"));
  EXPECT_THAT(Labels(TimeAxis("time", 0, 6)), ElementsAre("0", "1"));
}

TEST(LogTimeAxis, TicksAreRoundTimesWithRoomBetweenThem) {
  const auto axis = LogTimeAxis("", 200, 30'000, 7);
  EXPECT_EQ(axis.from, 180);
  EXPECT_EQ(axis.to, 36'000);
  EXPECT_THAT(Labels(axis), ElementsAre("3 min", "10 min", "1 h", "3 h", "10 h"));
  EXPECT_THAT(Labels(LogTimeAxis("", 200, 30'000, 4)), ElementsAre("10 min", "1 h", "10 h"));
}

TEST(LogTimeAxis, OneValueNoneAndVeryLongOnesAreInside) {
  const auto one = LogTimeAxis("", 60, 60, 8);
  EXPECT_LT(one.from, one.to);
  EXPECT_THAT(Labels(one), ElementsAre("1 min", "2 min"));
  const auto none = LogTimeAxis("", 0, 0, 8);
  EXPECT_EQ(none.from, 1);
  const auto ages = LogTimeAxis("", 1, 1e10, 8);
  EXPECT_GE(ages.to, 1e10);
  EXPECT_LE(ages.ticks.size(), 9U);
}

TEST(Axis, ValuesOutsideStandAtItsEnds) {
  const auto axis = LogTimeAxis("", 60, 3600, 8);
  EXPECT_EQ(axis.Share(0), 0);
  EXPECT_EQ(axis.Share(-5), 0);
  EXPECT_EQ(axis.Share(1e9), 1);
  EXPECT_EQ(axis.Share(std::nan("")), 0);
}

}  // namespace
}  // namespace muster::sim::report

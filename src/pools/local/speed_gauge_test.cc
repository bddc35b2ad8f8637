#include "pools/local/speed_gauge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::pools {
namespace {

contract::Report Of(std::int64_t at_ms, double workers, double step_ms) {
  contract::Report report;
  report.at_ms = at_ms;
  report.numbers = {{"workers", workers},
                    {"step_ms", step_ms},
                    {"compute_ms", step_ms / 2},
                    {"batch", 64},
                    {"noise_scale", 96}};
  return report;
}

TEST(SpeedGauge, TellsTheSpeedOfTheWholeJobInTheUnitsOfTheScheduler) {
  SpeedGauge gauge;
  const auto news = gauge.Read(Of(1'000, 4, 20));
  ASSERT_TRUE(news.has_value());
  EXPECT_EQ(news->workers, 4);
  model::Speed want;
  want.gpus = 0;
  want.samples = want.first_batch = want.most_batch = want.most_samples = 64;
  want.step_us = 20'000;
  want.compute_us = 10'000;
  want.noise_milli = 1'500;
  EXPECT_EQ(news->speed, want);
}

TEST(SpeedGauge, SaysNothingTwice) {
  SpeedGauge gauge;
  EXPECT_TRUE(gauge.Read(Of(1'000, 4, 20)));
  EXPECT_FALSE(gauge.Read(Of(2'000, 4, 40))) << "too soon";
  EXPECT_FALSE(gauge.Read(Of(60'000, 4, 21))) << "the same but for a tenth";
  EXPECT_TRUE(gauge.Read(Of(61'000, 2, 40))) << "another number of workers";
  EXPECT_TRUE(gauge.Read(Of(62'000, 4, 30))) << "slower than it was";
}

TEST(SpeedGauge, IgnoresWhoSaysTooLittleOrNothingSensible) {
  SpeedGauge gauge;
  for (const char* name : {"workers", "step_ms", "batch"}) {
    auto report = Of(1'000, 4, 20);
    report.numbers.erase(name);
    EXPECT_FALSE(gauge.Read(report)) << name;
    for (const double value : {-1.0, 0.0, std::nan("")}) {
      report.numbers[name] = value;
      EXPECT_FALSE(gauge.Read(report)) << name << " " << value;
    }
  }
  auto report = Of(1'000, 4, INFINITY);
  report.numbers["noise_scale"] = INFINITY;
  report.numbers["compute_ms"] = 1e300;
  const auto news = gauge.Read(report);
  ASSERT_TRUE(news.has_value());
  EXPECT_GE(news->speed.step_us, news->speed.compute_us);
  EXPECT_GT(news->speed.noise_milli, 0);
}

}  // namespace
}  // namespace muster::pools

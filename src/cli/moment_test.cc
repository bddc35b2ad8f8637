#include "cli/moment.h"

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv

#include <ctime>

#include "base/units.h"

namespace muster::cli {
namespace {

constexpr std::int64_t kNow = 1'800'000'000'000;

std::string Said(std::string_view text) {
  const auto at_ms = ParseMoment(text, kNow);
  return at_ms ? FormatTimeMs(*at_ms) : "none";
}

class MomentTest : public testing::Test {
 protected:
  MomentTest() {
    if (const char* zone = ::getenv("TZ")) before_ = zone;
    Zone("CET-1CEST,M3.5.0,M10.5.0/3");
  }
  ~MomentTest() override { Zone(before_); }
  static void Zone(const std::string& zone) {
    if (zone.empty()) {
      ::unsetenv("TZ");
    } else {
      ::setenv("TZ", zone.c_str(), 1);
    }
    ::tzset();
  }
  std::string before_;
};

TEST_F(MomentTest, IsReadInTheTimeOfThisMachineUnlessItSaysUtc) {
  EXPECT_EQ(Said("2026-11-20T09:00"), "2026-11-20T08:00:00.000Z");
  EXPECT_EQ(Said("2026-07-20T09:00:30"), "2026-07-20T07:00:30.000Z") << "in summer";
  EXPECT_EQ(Said("2026-11-20"), "2026-11-19T23:00:00.000Z");
  EXPECT_EQ(Said("2026-11-20T09:00Z"), "2026-11-20T09:00:00.000Z");
  EXPECT_EQ(Said("2026-11-20T09:00:00.250Z"), "2026-11-20T09:00:00.250Z");
}

TEST_F(MomentTest, IsAlsoNowOrLater) {
  EXPECT_EQ(ParseMoment("now", kNow), kNow);
  EXPECT_EQ(ParseMoment("+1h30m", kNow), kNow + 5'400'000);
}

TEST_F(MomentTest, WhatIsNoneIsSaidToBeNone) {
  for (const char* text : {"", "+", "+2", "2h", "tomorrow", "09:00", "2026-13-01",
                           "2026-11-20T25:00", "+9999999d", "2026-11-20 09:00"}) {
    EXPECT_EQ(Said(text), "none") << text;
  }
}

}  // namespace
}  // namespace muster::cli

#include "base/units.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace muster {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

TEST(Milli, ReadsWholeNumbersAndUpToThreeDecimals) {
  EXPECT_EQ(ParseMilli("0"), 0);
  EXPECT_EQ(ParseMilli("2"), 2000);
  EXPECT_EQ(ParseMilli("0.25"), 250);
  EXPECT_EQ(ParseMilli("1.001"), 1001);
  EXPECT_EQ(ParseMilli("1.5000"), 1500);  // nothing is rounded away
}

TEST(Milli, RefusesWhatWouldBeRounded) {
  EXPECT_EQ(ParseMilli("0.3333"), std::nullopt);
  EXPECT_EQ(ParseMilli("0.0001"), std::nullopt);
}

TEST(Milli, RefusesWhatIsNoPlainNumber) {
  for (const char* text : {"", " 1", "1 ", "-1", "+1", ".5", "1.", "1.2.3", "1e3", "1,5", "two"}) {
    EXPECT_EQ(ParseMilli(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(Milli, StopsWhereTheIntegerEnds) {
  EXPECT_EQ(ParseMilli("9223372036854775.807"), kMax);
  EXPECT_EQ(ParseMilli("9223372036854775.808"), std::nullopt);
  EXPECT_EQ(ParseMilli("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseMilli(std::string(400, '9')), std::nullopt);
  EXPECT_EQ(ParseMilli("0." + std::string(400, '0')), std::nullopt);
}

TEST(Milli, IsWrittenWithoutTrailingZeros) {
  EXPECT_EQ(FormatMilli(0), "0");
  EXPECT_EQ(FormatMilli(2000), "2");
  EXPECT_EQ(FormatMilli(2500), "2.5");
  EXPECT_EQ(FormatMilli(50), "0.05");
  EXPECT_EQ(FormatMilli(1), "0.001");
  EXPECT_EQ(FormatMilli(-250), "-0.25");
  EXPECT_EQ(FormatMilli(kMax), "9223372036854775.807");
  EXPECT_EQ(FormatMilli(kMin), "-9223372036854775.808");
}

TEST(Bytes, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBytes("512"), 512);
  EXPECT_EQ(ParseBytes("1Ki"), 1024);
  EXPECT_EQ(ParseBytes("10Gi"), 10LL << 30);
  EXPECT_EQ(ParseBytes("1k"), 1000);
  EXPECT_EQ(ParseBytes("3M"), 3'000'000);
  EXPECT_EQ(ParseBytes("2Pi"), 2LL << 50);
  EXPECT_EQ(ParseBytes("1P"), 1'000'000'000'000'000);
}

TEST(Bytes, TakesFractionsThatAreWholeBytes) {
  EXPECT_EQ(ParseBytes("1.5T"), 1'500'000'000'000);
  EXPECT_EQ(ParseBytes("0.5Ki"), 512);
  EXPECT_EQ(ParseBytes("0.1Ki"), std::nullopt);
  EXPECT_EQ(ParseBytes("1.5"), std::nullopt);
}

TEST(Bytes, RefusesUnknownUnitsAndOverflow) {
  for (const char* text :
       {"", "Gi", "1K", "1gi", "1 Gi", "1GiB", "1Gi ", "-1Gi", "1.2.3Gi", "1Ei"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(ParseBytes("8191Pi"), 8191LL << 50);
  EXPECT_EQ(ParseBytes("8192Pi"), std::nullopt);
}

TEST(Bytes, AreWrittenInTheLargestExactBinaryUnit) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(512), "512");
  EXPECT_EQ(FormatBytes(1024), "1Ki");
  EXPECT_EQ(FormatBytes(1536), "1536");
  EXPECT_EQ(FormatBytes(80LL << 30), "80Gi");
  EXPECT_EQ(FormatBytes(1LL << 40), "1Ti");
  EXPECT_EQ(FormatBytes(-1024), "-1024");
}

TEST(Duration, ReadsOneOrSeveralParts) {
  EXPECT_EQ(ParseDurationMs("250ms"), 250);
  EXPECT_EQ(ParseDurationMs("90s"), 90'000);
  EXPECT_EQ(ParseDurationMs("1h30m"), 5'400'000);
  EXPECT_EQ(ParseDurationMs("2d"), 172'800'000);
  EXPECT_EQ(ParseDurationMs("1.5h"), 5'400'000);
  EXPECT_EQ(ParseDurationMs("1m1ms"), 60'001);
  EXPECT_EQ(ParseDurationMs("0s"), 0);
}

TEST(Duration, RefusesWhatHasNoUnitOrAnUnknownOne) {
  for (const char* text : {"", "90", "s", "1h30", "1H", "1 h", "-1s", "1min", "1hs", "0.5ms"}) {
    EXPECT_EQ(ParseDurationMs(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(Duration, RefusesANumberWithTwoPoints) {
  EXPECT_EQ(ParseDurationMs("1.5.2s"), std::nullopt);
  EXPECT_EQ(ParseDurationMs("1..5s"), std::nullopt);
}

TEST(Duration, StopsWhereTheIntegerEnds) {
  EXPECT_EQ(ParseDurationMs("9223372036854775807ms"), kMax);
  EXPECT_EQ(ParseDurationMs("9223372036854775807ms1ms"), std::nullopt);
  EXPECT_EQ(ParseDurationMs("106751991168d"), std::nullopt);
}

TEST(Duration, IsWrittenInItsParts) {
  EXPECT_EQ(FormatDurationMs(0), "0s");
  EXPECT_EQ(FormatDurationMs(250), "250ms");
  EXPECT_EQ(FormatDurationMs(5'400'000), "1h30m");
  EXPECT_EQ(FormatDurationMs(90'061'001), "1d1h1m1s1ms");
  EXPECT_EQ(FormatDurationMs(-90'000), "-1m30s");
  EXPECT_EQ(FormatDurationMs(kMin), "-106751991167d7h12m55s808ms");
}

TEST(Units, WhatIsWrittenReadsBackTheSame) {
  constexpr std::array<std::int64_t, 9> values = {0,           1,         999,        1000, 1024,
                                                  123'456'789, 5LL << 40, 86'400'000, kMax};
  for (const std::int64_t value : values) {
    EXPECT_EQ(ParseMilli(FormatMilli(value)), value);
    EXPECT_EQ(ParseBytes(FormatBytes(value)), value);
    EXPECT_EQ(ParseDurationMs(FormatDurationMs(value)), value);
  }
}

}  // namespace
}  // namespace muster

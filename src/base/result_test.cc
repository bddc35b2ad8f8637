#include "base/result.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Fail(ErrorCode::kInvalid, "7 is odd", "give an even number");
  return number / 2;
}

TEST(Result, CarriesAValue) {
  const Result<int> result = Half(8);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, 4);
}

TEST(Result, CarriesTheWholeError) {
  const Result<int> result = Half(7);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(result.error().message, "7 is odd");
  EXPECT_EQ(result.error().hint, "give an even number");
}

TEST(Result, PassesAnErrorOnWithoutLookingAtIt) {
  const Result<std::string> text = Half(7).map([](int half) { return std::to_string(half); });
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().message, "7 is odd");
}

TEST(Describe, PutsTheHintInBrackets) {
  EXPECT_EQ(Describe(Half(7).error()), "7 is odd (give an even number)");
}

TEST(Describe, LeavesOutAHintThatIsNotThere) {
  EXPECT_EQ(Describe(Error{ErrorCode::kNotFound, "no job x", ""}), "no job x");
}

// People write scripts against these numbers: they may be added to, never changed.
TEST(ExitStatus, IsTheOneThatIsDocumented) {
  EXPECT_EQ(ExitStatus(ErrorCode::kInternal), 1);
  EXPECT_EQ(ExitStatus(ErrorCode::kUsage), 2);
  EXPECT_EQ(ExitStatus(ErrorCode::kNotFound), 3);
  EXPECT_EQ(ExitStatus(ErrorCode::kDenied), 4);
  EXPECT_EQ(ExitStatus(ErrorCode::kInvalid), 5);
  EXPECT_EQ(ExitStatus(ErrorCode::kConflict), 5);
  EXPECT_EQ(ExitStatus(ErrorCode::kUnavailable), 6);
  EXPECT_EQ(ExitStatus(ErrorCode::kTimeout), 7);
}

}  // namespace
}  // namespace muster

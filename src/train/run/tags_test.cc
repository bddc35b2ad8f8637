#include "train/run/tags.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::train {
namespace {

TEST(TagsTest, OfOneStepAreDifferentUpToTheLastPlace) {
  constexpr std::uint64_t kLastFirst = (1U << 16U) - 1, kLastSecond = (1U << 23U) - 1;
  std::set<Tag> tags;
  for (const std::uint64_t first : {std::uint64_t{0}, kLastFirst}) {
    for (const std::uint64_t second : {std::uint64_t{0}, kLastSecond}) {
      for (const int column : {0, 1023}) {
        for (const auto kind : {TagKind::kExchange, TagKind::kAsync}) {
          tags.insert(StepTag(1023, column, kind, first, second));
        }
      }
    }
  }
  EXPECT_EQ(tags.size(), 16U);
  EXPECT_LT(*tags.rbegin(), kMoveTags);
}

TEST(TagsDeathTest, APlaceThatATagHasNoRoomForIsNotTakenForAnother) {
  EXPECT_DEATH(StepTag(1, 0, TagKind::kExchange, 1U << 16U), "room for the first");
  EXPECT_DEATH(StepTag(1, 0, TagKind::kExchange, 0, 1U << 23U), "room for the second");
}

}  // namespace
}  // namespace muster::train

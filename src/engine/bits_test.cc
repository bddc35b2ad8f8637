#include "engine/bits.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace muster::engine {
namespace {

TEST(Bits, IsEmptyAtFirst) {
  Bits bits;
  bits.Resize(1000);
  EXPECT_EQ(bits.Next(0), kNone);
  EXPECT_FALSE(bits.Contains(3));
  EXPECT_FALSE(bits.Contains(100'000));
}

TEST(Bits, FindsMembersAcrossWordsOfEveryLevel) {
  Bits bits;
  bits.Resize(300'000);
  for (const std::uint32_t i : {0U, 63U, 64U, 4095U, 4096U, 262'143U, 262'144U, 299'999U}) {
    bits.Insert(i);
    EXPECT_EQ(bits.Next(i), i);
    EXPECT_TRUE(bits.Contains(i));
  }
  EXPECT_EQ(bits.Next(1), 63U);
  EXPECT_EQ(bits.Next(65), 4095U);
  EXPECT_EQ(bits.Next(4097), 262'143U);
  EXPECT_EQ(bits.Next(262'145), 299'999U);
  EXPECT_EQ(bits.Next(300'000), kNone);
}

TEST(Bits, KeepsItsMembersWhenItGrows) {
  Bits bits;
  bits.Resize(10);
  bits.Insert(7);
  bits.Resize(100'000);
  EXPECT_EQ(bits.Next(0), 7U);
  bits.Insert(99'999);
  EXPECT_EQ(bits.Next(8), 99'999U);
}

TEST(Bits, BehavesLikeASet) {
  constexpr std::uint32_t kSize = 20'000;
  Bits bits;
  bits.Resize(kSize);
  std::set<std::uint32_t> expected;
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    // Clustered, so that words fill up and become empty again.
    const auto member =
        static_cast<std::uint32_t>(random.Between(0, 9) * 1999 + random.Between(0, 70));
    if (random.Chance(50)) {
      bits.Insert(member);
      expected.insert(member);
    } else {
      bits.Erase(member);
      expected.erase(member);
    }
    const auto from = static_cast<std::uint32_t>(random.Between(0, kSize - 1));
    const auto next = expected.lower_bound(from);
    ASSERT_EQ(bits.Next(from), next == expected.end() ? kNone : *next);
    ASSERT_EQ(bits.Contains(member), expected.contains(member));
  }
}

}  // namespace
}  // namespace muster::engine

#include "train/members/terms.h"

#include <gtest/gtest.h>

namespace muster::train {
namespace {

TEST(TermsTest, SayWhatDiffersWithBothValues) {
  const std::string mine = "steps 500; batch 64; rate constant:rate=0.01; data text:a b";
  EXPECT_EQ(DifferenceOf(mine, "steps 500; batch 128; rate constant:rate=0.01; data text:a b"),
            "batch 64, not 128");
  EXPECT_EQ(DifferenceOf(mine, "steps 500; batch 64; rate constant:rate=0.5; data digits"),
            "rate constant:rate=0.01, not constant:rate=0.5; data text:a b, not digits");
}

TEST(TermsTest, SayWhatOnlyOneSideHas) {
  EXPECT_EQ(DifferenceOf("steps 5; batches linear", "steps 5"), "batches linear, not none");
  EXPECT_EQ(DifferenceOf("steps 5", "steps 5; batches linear"), "batches none, not linear");
}

TEST(TermsTest, OfAnotherKindAreSaidAsTheyAre) {
  EXPECT_EQ(DifferenceOf("a 1; a 2", "a 1; a 3"), "a 1; a 2, not a 1; a 3");
  EXPECT_EQ(DifferenceOf("", "a"), "a none, not ");
}

TEST(TermsTest, AreJoinedWithSemicolons) {
  EXPECT_EQ(JoinTerms("a 1", "b 2"), "a 1; b 2");
  EXPECT_EQ(JoinTerms("", "b 2"), "b 2");
  EXPECT_EQ(JoinTerms("a 1", ""), "a 1");
}

}  // namespace
}  // namespace muster::train

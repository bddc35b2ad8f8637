#include "api/tokens.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(Tokens, AreTakenApartAsTheyWereMade) {
  const auto token = NewToken();
  const auto read = SplitToken(token.Text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, token.id);
  EXPECT_EQ(read->secret, token.secret);
  EXPECT_EQ(token.secret.size(), 64U) << "256 bits";
  EXPECT_NE(NewToken().secret, token.secret);
}

TEST(Tokens, WhatIsNoneIsRefused) {
  const auto text = NewToken().Text();
  EXPECT_FALSE(SplitToken(""));
  EXPECT_FALSE(SplitToken("mst_"));
  EXPECT_FALSE(SplitToken(text + "0"));
  EXPECT_FALSE(SplitToken("xst" + text.substr(3)));
  auto broken = text;
  broken[10] = 'Z';
  EXPECT_FALSE(SplitToken(broken));
}

TEST(Tokens, HashIsSha256) {
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(SameHash(HashOf("a"), HashOf("a")));
  EXPECT_FALSE(SameHash(HashOf("a"), HashOf("b")));
  EXPECT_FALSE(SameHash(HashOf("a"), ""));
}

}  // namespace
}  // namespace muster::api

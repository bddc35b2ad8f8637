#include "base/hex.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Hex, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(ToHex(all).substr(0, 6), "000102");
  EXPECT_EQ(ToHex(all).substr(508), "feff");
  EXPECT_EQ(FromHex(ToHex(all)), all);
  EXPECT_EQ(FromHex(""), "");
}

TEST(Hex, WhatIsNoPairOfDigitsIsRefused) {
  for (const char* wrong : {"0", "0g", "-1", "+1", " 1", "000"}) {
    EXPECT_EQ(FromHex(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace muster

#include "net/base64.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

TEST(Base64, WritesWhatTheStandardSays) {
  EXPECT_EQ(ToBase64(""), "");
  EXPECT_EQ(ToBase64("f"), "Zg==");
  EXPECT_EQ(ToBase64("fo"), "Zm8=");
  EXPECT_EQ(ToBase64("foo"), "Zm9v");
  EXPECT_EQ(ToBase64("foobar"), "Zm9vYmFy");
}

TEST(Base64, AnyBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 700; ++i) {
    EXPECT_EQ(FromBase64(ToBase64(bytes)), bytes) << i;
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64, WhatIsNoneIsRefused) {
  for (const char* text :
       {"Z", "Zg=", "Zg", "Z===", "====", "Zg==Zg==", "Zm9\n", "Zm-v", "    Zg==", "Zm9v    "}) {
    EXPECT_EQ(FromBase64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::net

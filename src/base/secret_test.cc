#include "base/secret.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Secret, HasTwoHexDigitsAByteAndIsNeverTheSame) {
  const auto one = NewSecretHex(24);
  EXPECT_EQ(one.size(), 48U);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, NewSecretHex(24));
}

}  // namespace
}  // namespace muster

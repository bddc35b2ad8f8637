#include "api/seal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::api {
namespace {

TEST(Sealer, OnlyItsMakerReadsIt) {
  const Sealer sealer, other;
  for (const std::string text : {"", "20002.zeta-0", "q/\n"}) {
    const auto sealed = sealer.Seal(text);
    EXPECT_EQ(sealer.Open(sealed), text);
    EXPECT_EQ(other.Open(sealed), std::nullopt);
    EXPECT_NE(sealer.Seal(text), sealed);  // equal texts do not look equal
  }
}

TEST(Sealer, WhatWasChangedOrMadeUpIsRefused) {
  const Sealer sealer;
  const auto sealed = sealer.Seal("20002.zeta-0");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    auto changed = sealed;
    changed[i] = changed[i] == '0' ? '1' : '0';
    EXPECT_EQ(sealer.Open(changed), std::nullopt) << i;
  }
  for (const auto& wrong :
       std::vector<std::string>{"", "00", "zz", sealed.substr(2), sealed + "0"}) {
    EXPECT_EQ(sealer.Open(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace muster::api

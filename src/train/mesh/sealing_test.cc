#include "train/mesh/sealing.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::train {
namespace {

TEST(SealingTest, AnyChangedBitIsNoticedAndNoFrameCanBeRepeated) {
  const Hash key = NewNonce();
  const std::vector<std::byte> header(32, std::byte{7}), plain(1000, std::byte{42});
  Sealer seal(key);
  std::vector<std::byte> first(plain.size()), second(plain.size());
  const auto first_seal = seal.Seal(header, plain, first.data());
  const auto second_seal = seal.Seal(header, plain, second.data());
  EXPECT_NE(first, plain);
  EXPECT_NE(first, second);
  {
    Sealer open(key);
    auto changed = first;
    changed[500] ^= std::byte{1};
    EXPECT_FALSE(open.Open(header, changed, first_seal));
  }
  {
    Sealer open(key);
    auto changed_header = header;
    changed_header[0] ^= std::byte{1};
    auto bytes = first;
    EXPECT_FALSE(open.Open(changed_header, bytes, first_seal));
  }
  Sealer open(key);
  auto bytes = first;
  EXPECT_TRUE(open.Open(header, bytes, first_seal));
  EXPECT_EQ(bytes, plain);
  bytes = first;
  EXPECT_FALSE(open.Open(header, bytes, first_seal)) << "said again";
  Sealer later(key);
  later.Skip();
  EXPECT_TRUE(later.Open(header, second, second_seal));
  EXPECT_EQ(second, plain);
}

}  // namespace
}  // namespace muster::train

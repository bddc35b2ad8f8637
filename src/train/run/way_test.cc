#include "train/run/way.h"

#include <gtest/gtest.h>

namespace muster::train {
namespace {

ColumnLayout Four() {
  ColumnLayout at;
  at.computers = at.owners = {0, 1, 2, 3};
  return at;
}

const std::vector<int> kTwoAndTwo = {0, 0, 2, 2};
const std::vector<int> kEachItsOwn = {0, 1, 2, 3};

TEST(WayTest, LittleGoesStraightAndMuchIsCarried) {
  const CostModel model;
  EXPECT_EQ(HostsForRoutes(Four(), kTwoAndTwo, 1 << 10, model), kEachItsOwn);
  EXPECT_EQ(HostsForRoutes(Four(), kTwoAndTwo, 4 << 20, model), kTwoAndTwo);
}

TEST(WayTest, NothingIsCarriedWhereMemoryIsNoFasterThanTheLink) {
  CostModel model;
  model.near.byte_s = 2 * model.far.byte_s;
  EXPECT_EQ(HostsForRoutes(Four(), kTwoAndTwo, 4 << 20, model), kEachItsOwn);
}

TEST(WayTest, WithoutAMeasurementItIsAsTheHostsAre) {
  EXPECT_EQ(HostsForRoutes(Four(), kTwoAndTwo, 1, std::nullopt), kTwoAndTwo);
}

}  // namespace
}  // namespace muster::train

#include "train/run/numbers.h"

#include <gtest/gtest.h>

#include <map>

#include "train/run/part_server.h"
#include "train/run/tags.h"
#include "train/run/test_fabric.h"

namespace muster::train {
namespace {

// The second of three workers, which computes the one shard.
class NumbersTest : public testing::Test {
 protected:
  NumbersTest() {
    at_.runs = {{0, 1}};
    at_.computers = {1};
  }
  // What another one says, with a row as numbers.cc lays it out.
  void Say(int rank, std::int64_t step, const Word& word) {
    const std::vector<double> row{word.stop ? 1.0 : 0.0,
                                  word.checkpoint ? 1.0 : 0.0,
                                  word.square_before,
                                  static_cast<double>(word.next.batches),
                                  word.next.noise,
                                  word.busy ? 1.0 : 0.0,
                                  static_cast<double>(word.unwritten),
                                  word.joined ? 1.0 : 0.0};
    fabric_.Put(rank, StepTag(step, 0, TagKind::kNumbers), row);
  }
  // The words of all three in a step.
  StepNumbers Swap(std::int64_t step, const Word& chief, const Word& mine, const Word& last) {
    Say(0, step, chief);
    Say(2, step, last);
    auto numbers = numbers_.Swap(step, {{1.5, 4}}, mine);
    EXPECT_TRUE(numbers) << (numbers ? "" : numbers.error().message);
    return numbers ? *numbers : StepNumbers();
  }

  TestFabric fabric_{1, 3};
  ColumnLayout at_;
  Numbers numbers_{fabric_, 3, at_};
};

TEST_F(NumbersTest, ACheckpointIsWrittenWhenTheChiefSaysSoAndNobodyIsBusy) {
  const Word wants{.checkpoint = true}, busy{.busy = true, .unwritten = 40};
  EXPECT_TRUE(Swap(0, wants, {}, {}).checkpoint);
  EXPECT_FALSE(Swap(1, {}, wants, wants).checkpoint);
  for (const auto& [mine, last] : {std::pair(busy, Word()), std::pair(Word(), busy)}) {
    const auto numbers = Swap(2, wants, mine, last);
    EXPECT_FALSE(numbers.checkpoint);
    EXPECT_TRUE(numbers.busy);
    EXPECT_EQ(numbers.unwritten, 40);
  }
  const auto numbers = Swap(3, {}, {}, {.unwritten = 41});  // one that could not write
  EXPECT_FALSE(numbers.busy);
  EXPECT_EQ(numbers.unwritten, 41);
  EXPECT_EQ(Swap(4, {}, {}, {}).unwritten, -1);
}

TEST_F(NumbersTest, TheDevicesSumWhenAllHaveJoined) {
  const Word joined{.joined = true};
  EXPECT_FALSE(Swap(0, joined, joined, {}).joined);
  EXPECT_FALSE(Swap(1, joined, {}, joined).joined);
  EXPECT_TRUE(Swap(2, joined, joined, joined).joined);
}

TEST_F(NumbersTest, WhatWasToldIsTakenByAllBeforeItsMemoryGoes) {
  for (std::int64_t step = 0; step < 3; ++step) {
    Swap(step, {}, {}, {});
    EXPECT_EQ(fabric_.offered().size(), 2U) << "of the last step";
  }
  EXPECT_TRUE(numbers_.Finish());
  EXPECT_TRUE(fabric_.offered().empty());
  EXPECT_TRUE(numbers_.Finish());
}

TEST_F(NumbersTest, WhoEndsBeforeItsOffersAreTakenBreaksOffTheView) {
  {
    Offers offers(fabric_, 0);
    offers.Add(7, {});
    Offers moved(std::move(offers));
    EXPECT_TRUE(moved.Taken());
  }
  EXPECT_FALSE(fabric_.aborted());
  {
    Offers offers(fabric_, 0);
    offers.Add(8, {});
  }
  EXPECT_TRUE(fabric_.aborted());
}

}  // namespace
}  // namespace muster::train

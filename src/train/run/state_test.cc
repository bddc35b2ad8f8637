#include "train/run/state.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "train/run/strategy.h"

namespace muster::train {
namespace {

// Gives whoever fetches zeros, and notes what it was told to expect by then.
class NotingFabric final : public Fabric {
 public:
  explicit NotingFabric(int rank) : rank_(rank) {}

  const std::set<Tag>& expected() const { return expected_; }
  int fetched() const { return fetched_; }
  int unexpected() const { return unexpected_; }  // at the first fetch, or at any after it

  int rank() const override { return rank_; }
  int size() const override { return 2; }
  bool SharesMemory(int /*peer*/) const override { return false; }
  void Offer(int /*peer*/, Tag /*tag*/, std::span<const std::byte> /*bytes*/) override {}
  Result<std::span<const std::byte>> Look(int /*peer*/, Tag /*tag*/) override {
    return Fail(ErrorCode::kInternal, "nobody looks here");
  }
  Result<void> Fetch(int /*peer*/, Tag tag, std::span<std::byte> /*into*/) override {
    ++fetched_;
    if (!expected_.contains(tag)) ++unexpected_;
    return {};
  }
  void Expect(int /*peer*/, Tag tag, std::span<std::byte> /*into*/) override {
    if (fetched_ > 0) ++unexpected_;
    expected_.insert(tag);
  }
  void Done(int /*peer*/, Tag /*tag*/) override {}
  Result<void> Taken(int /*peer*/, Tag /*tag*/) override { return {}; }
  void Release(int /*peer*/) override {}
  void Abort(const std::string& /*why*/) override {}
  bool aborted() const override { return false; }

 private:
  int rank_;
  std::set<Tag> expected_;
  int fetched_ = 0, unexpected_ = 0;
};

// Else what comes early, which may be all of it, would lie in memory twice.
TEST(TrainStateTest, OneThatJoinsExpectsAllOfTheStateBeforeItWaitsForAnyOfIt) {
  const std::vector<Buckets> buckets{{{1000, 1600}, {40, 1000}, {0, 40}}};
  const auto strategy = ParseStrategy("data", 8);
  ASSERT_TRUE(strategy) << strategy.error().message;
  ChangeMessage change;
  change.view.step = 6;
  change.view.members = {{1, "here", "", "", 0}, {2, "there", "", "", 0}};
  View before = change.view;
  before.members.pop_back();
  change.holdings[1] = NeededBy(0, LayoutFor(*strategy, before, 1), 6);
  std::vector<std::byte> memory(1U << 20U);
  Arena arena(memory);
  TrainState state(buckets, 2, arena, "run");
  NotingFabric fabric(1);
  const auto start = [](int, std::span<float>) { FAIL() << "the state is there"; };
  const auto installed = state.Install(change, LayoutFor(*strategy, change.view, 1), fabric, start,
                                       CheckpointFolder(""));
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_GT(fabric.fetched(), 3) << "parameters and two planes, of each bucket";
  EXPECT_EQ(fabric.unexpected(), 0);
  EXPECT_EQ(fabric.expected().size(), static_cast<std::size_t>(fabric.fetched()));
}

}  // namespace
}  // namespace muster::train

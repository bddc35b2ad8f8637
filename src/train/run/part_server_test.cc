#include "train/run/part_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/run/model_workload.h"
#include "train/run/test_fabric.h"

namespace muster::train {
namespace {

constexpr int kShards = 2, kWorker = 1;
constexpr std::int64_t kFrom = 3, kRound = 5;  // steps

class PartServerTest : public testing::Test {
 protected:
  PartServerTest() {
    ModelRun run;
    run.model = "mlp:8,1";
    run.data = "linear";
    run.optimizer = "sgd";
    workload_ = *ModelWorkload::Open(run);
    live_.from = kFrom;
    live_.applied.assign(kRound * kShards, 0);
    live_.values.parameters.assign(cut_.floats(), 1.0F);
  }
  Result<void> Serve() {
    PartServer server(*workload_, fabric_, cut_, live_, {1, kShards, nullptr});
    std::vector<float> parameters(cut_.floats());
    return server.Serve(kWorker, parameters);
  }
  void Ask(std::int64_t what, std::int64_t unit) {
    fabric_.Put(kWorker, TagOf(kFrom, AsyncTag::kRequest),
                std::vector<std::int64_t>{what, unit, 0});
    if (what != AsyncRequest::kPush) return;
    fabric_.Put(kWorker, TagOf(kFrom, AsyncTag::kGradient), std::vector<float>(cut_.floats(), 1));
  }

  std::unique_ptr<ModelWorkload> workload_;
  TestFabric fabric_{0, 2};
  const std::vector<Extent> buckets_{{0, 9}};
  const PartCut cut_{buckets_, 1, 0, 0};
  LiveRound live_;
};

TEST_F(PartServerTest, AppliesTheUnitsOfTheRoundOnce) {
  const auto first = kFrom * kShards, last = (kFrom + kRound) * kShards - 1;
  for (const auto unit : {first, last, first}) Ask(AsyncRequest::kPush, unit);
  Ask(AsyncRequest::kPull, first);
  Ask(AsyncRequest::kEnd, 0);
  const auto served = Serve();
  EXPECT_TRUE(served) << served.error().message;
  ASSERT_EQ(live_.updates.size(), 2U);
  EXPECT_EQ(live_.updates[1].unit, last);
}

TEST_F(PartServerTest, RefusesUnitsThatAreNotOfTheRound) {
  const auto first = kFrom * kShards, behind = (kFrom + kRound) * kShards;
  for (const auto what : {AsyncRequest::kPush, AsyncRequest::kPull}) {
    for (const auto unit : {first - 1, behind, std::int64_t{-1}, std::int64_t{1} << 60U,
                            std::numeric_limits<std::int64_t>::min()}) {
      fabric_ = TestFabric(0, 2);
      Ask(what, unit);
      const auto served = Serve();
      ASSERT_FALSE(served) << unit;
      EXPECT_THAT(served.error().message, testing::HasSubstr(std::to_string(unit)));
    }
  }
  Ask(17, first);  // there is no such request
  EXPECT_FALSE(Serve());
  EXPECT_TRUE(live_.updates.empty());
}

}  // namespace
}  // namespace muster::train

#include "train/run/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "train/members/folder_store.h"
#include "train/run/model_workload.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

class TrainerTest : public testing::Test {
 protected:
  // One worker of the job, to the end.
  Result<TrainEnd> Work(std::int64_t timeout_ms) {
    ModelRun run;
    run.model = "mlp:8,1";
    run.data = "linear";
    run.shards = 2;
    const auto workload = ModelWorkload::Open(run);
    if (!workload) return tl::unexpected(workload.error());
    TrainOptions options;
    options.strategy = *ParseStrategy("data", run.shards);
    options.mesh.job = "test";
    options.mesh.secret = "a secret of the test";
    options.mesh.timeout_ms = timeout_ms;
    options.steps = 3;
    FolderStore store(folder_ / "store");
    SystemClock clock;
    const std::atomic<bool> leave{false};
    return Train(**workload, store, clock, options, {}, leave);
  }

  const TempFolder folder_;
};

// It would be lost to the others again and again, or they to it.
TEST_F(TrainerTest, AWorkerWithAnotherTimeOutThanItsJobIsToldBoth) {
  const auto first = Work(20'000);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*first, TrainEnd::kFinished);
  const auto other = Work(60'000);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(other.error().message, HasSubstr("timeout-ms 60000, not 20000"));
}

TEST_F(TrainerTest, ATimeOutWithoutRoomForBeatsIsRefused) {
  for (const std::int64_t timeout_ms :
       {std::int64_t{-1}, std::int64_t{0}, std::int64_t{2}, kLeastTimeoutMs - 1}) {
    const auto end = Work(timeout_ms);
    ASSERT_FALSE(end) << timeout_ms;
    EXPECT_EQ(end.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(end.error().hint, HasSubstr("--timeout-ms 50 or more"));
  }
}

}  // namespace
}  // namespace muster::train

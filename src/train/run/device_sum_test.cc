#include "train/run/device_sum.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "train/members/folder_store.h"
#include "train/run/device_group.h"
#include "train/run/test_fabric.h"
#include "train/run/trainer.h"

namespace muster::train {
namespace {

constexpr int kWorkers = 3, kShards = 6, kGroups = 4;
constexpr std::int64_t kSteps = 120, kGrouped = 4, kStrikeFrom = 20;
constexpr std::size_t kFloats = 120, kBucketFloats = 80;

// Whole numbers, and few: sums are the same in any order.
float GradientAt(std::int64_t step, int shard, std::size_t i) {
  return static_cast<float>(step + shard + static_cast<std::int64_t>(i % 7));
}

// What processes see of each other, in the place of links between devices.
struct Board {
  struct Sum {
    std::atomic<int> came{0};
    std::array<std::atomic<float>, kFloats> values{};
  };
  using ByWorker = std::array<std::atomic<int>, kWorkers>;  // 1: summed it up there to the end

  std::atomic<int> groups{0};
  std::atomic<std::int64_t> struck{kSteps};
  std::array<std::atomic<int>, kGroups> joined{};
  std::array<std::array<Sum, kSteps>, kGroups> sums{};
  std::array<ByWorker, kSteps> on_device{}, over_mesh{};

  int On(std::int64_t step) const { return Count(on_device[static_cast<std::size_t>(step)]); }
  int Over(std::int64_t step) const { return Count(over_mesh[static_cast<std::size_t>(step)]); }

 private:
  static int Count(const ByWorker& workers) {
    return std::accumulate(workers.begin(), workers.end(), 0);
  }
};

enum class Strike { kNone, kDeviceFails, kKilled };

class FakeDevice final : public DeviceSum {
 public:
  FakeDevice(Board& board, std::size_t worker, Strike strike)
      : board_(board), worker_(worker), strike_(strike) {}

  std::string Device() const override { return failed_ ? "" : "device " + std::to_string(worker_); }
  void Begin() override { left_ = false; }
  Result<std::string> Invite() override { return std::to_string(board_.groups++); }
  // Not before some steps went over the mesh.
  Result<void> Join(const std::string& invitation, int /*rank*/, int size) override {
    if (left_) return Fail(ErrorCode::kUnavailable, "left");
    group_ = std::stoul(invitation);
    auto& joined = board_.joined.at(group_);
    for (++joined; joined < size || board_.Over(kGrouped) < size; std::this_thread::yield()) {
      if (left_) return Fail(ErrorCode::kUnavailable, "left");
    }
    return {};
  }
  void Leave() override { left_ = true; }
  Result<std::vector<ShardResult>> Compute(const Task& task, std::span<const float> /*parameters*/,
                                           std::span<float> gradient,
                                           ShardProgress& progress) override {
    const auto step = static_cast<std::size_t>(task.step);
    auto& sum = board_.sums.at(group_).at(step);
    for (int shard = task.shards.first; shard < task.shards.last; ++shard) {
      for (std::size_t i = 0; i < kFloats; ++i) sum.values[i] += GradientAt(task.step, shard, i);
    }
    if (strike_ != Strike::kNone && task.step >= kStrikeFrom) {
      while (sum.came < task.parts - 1 && progress.Need({0, 0})) {
        std::this_thread::yield();  // until all are in the step
      }
      board_.struck = task.step;
      if (strike_ == Strike::kKilled) raise(SIGKILL);
      failed_ = true;
      return Fail(ErrorCode::kUnavailable, "the device failed");
    }
    for (++sum.came; sum.came < task.parts; std::this_thread::yield()) {
      if (left_ || !progress.Need({0, 0})) return Fail(ErrorCode::kUnavailable, "broken off");
    }
    for (const auto& bucket : task.buckets) {
      const auto part = PartOf(bucket, task.parts, task.part);
      for (std::size_t i = part.first; i < part.last; ++i) gradient[i] = sum.values[i];
      progress.Ready(bucket.first);
    }
    board_.on_device[step][worker_] = 1;
    return std::vector<ShardResult>(static_cast<std::size_t>(task.shards.size()), {1, 1});
  }

 private:
  Board& board_;
  const std::size_t worker_;
  const Strike strike_;
  std::size_t group_ = 0;
  std::atomic<bool> left_{false}, failed_{false};
};

class Summing final : public Workload {
 public:
  Summing(Board& board, std::size_t worker, Strike strike)
      : board_(board), worker_(worker), device_(board, worker, strike) {}
  std::string Describe() const override { return "model summing"; }
  std::string ComputedWith() const override { return ""; }
  std::vector<std::size_t> LayerFloats() const override { return {50, 70}; }
  void Start(std::uint64_t /*seed*/, std::span<float> parameters) const override {
    std::ranges::fill(parameters, 0.0F);
  }
  ShardResult Compute(std::int64_t step, int shard, std::span<const float> /*parameters*/,
                      std::span<float> gradient, ShardProgress& progress) override {
    while (step == kGrouped && board_.joined[0] < kWorkers && progress.Need({0, 0})) {
      std::this_thread::yield();
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = GradientAt(step, shard, i);
    board_.over_mesh[static_cast<std::size_t>(step)][worker_] = 1;
    return {1, 1};
  }
  int StateFloats() const override { return 0; }
  void Update(const UpdateStep& /*step*/, std::span<const float> gradient,
              std::span<const float> parameters, std::span<const float> /*state*/,
              std::span<float> new_parameters, std::span<float> /*new_state*/) const override {
    std::ranges::transform(parameters, gradient, new_parameters.begin(), std::plus());
  }
  DeviceSum* device_sum() override { return &device_; }

 private:
  Board& board_;
  const std::size_t worker_;
  FakeDevice device_;
};

void ExpectAllSummed(const std::vector<std::vector<float>>& columns) {
  for (std::size_t i = 0; i < kFloats; ++i) {
    float sum = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      for (int shard = 0; shard < kShards; ++shard) sum += GradientAt(step, shard, i);
    }
    EXPECT_EQ(columns[0][i], sum) << i;
  }
}

void Work(const TempFolder& folder, Board& board, std::size_t worker, Strike strike) {
  const auto strategy = ParseStrategy("data", kShards);
  ASSERT_TRUE(strategy) << strategy.error().message;
  TrainOptions options;
  options.strategy = *strategy;
  options.mesh.job = "test";
  options.mesh.secret = "a secret of the test";
  options.mesh.timeout_ms = 20'000;  // a loaded machine may be slow
  options.steps = kSteps;
  options.first_workers = kWorkers;
  options.bucket_floats = kBucketFloats;
  options.exact = false;
  options.collect = true;
  TrainEvents events;
  events.collected = ExpectAllSummed;
  Summing summing(board, worker, strike);
  FolderStore store(folder / "store");
  SystemClock clock;
  const std::atomic<bool> leave{false};
  const auto end = Train(summing, store, clock, options, events, leave);
  EXPECT_TRUE(end) << (end ? "" : end.error().message);
}

class DeviceSumTest : public testing::Test {
 protected:
  DeviceSumTest()
      : board_(new(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) Board) {}
  ~DeviceSumTest() override { munmap(board_, sizeof(Board)); }

  // A process for each worker; `strike` is what the second one meets.
  void Run(Strike strike) {
    const TempFolder folder;
    std::vector<pid_t> processes;
    for (std::size_t i = 0; i < kWorkers; ++i) {
      processes.push_back(fork());
      if (processes.back() != 0) continue;
      Work(folder, *board_, i, i == 1 ? strike : Strike::kNone);
      _exit(HasFailure() ? 1 : 0);
    }
    for (std::size_t i = 0; i < kWorkers; ++i) {
      int status = 0;
      EXPECT_EQ(waitpid(processes[i], &status, 0), processes[i]);
      const bool dies = strike == Strike::kKilled && i == 1;
      EXPECT_EQ(status, dies ? SIGKILL : 0) << "worker " << i;
    }
  }
  // The first that the devices summed up.
  std::int64_t Changeover() const {
    std::int64_t step = 0;
    while (step < kSteps && board_->On(step) == 0) ++step;
    return step;
  }

  Board* const board_;
};

TEST_F(DeviceSumTest, AllChangeOverToTheDevicesAtTheSameStepAndStayThere) {
  Run(Strike::kNone);
  const auto first = Changeover();
  EXPECT_GT(first, kGrouped);
  ASSERT_LT(first, kSteps);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    EXPECT_EQ(board_->On(step), step < first ? 0 : kWorkers) << step;
    EXPECT_EQ(board_->Over(step), step < first ? kWorkers : 0) << step;
  }
}

TEST_F(DeviceSumTest, AStepInWhichSomebodyIsLostIsDoneAgainOverTheMesh) {
  Run(Strike::kKilled);
  const std::int64_t struck = board_->struck;
  ASSERT_LT(struck, kSteps);
  EXPECT_EQ(board_->On(struck), 0);
  EXPECT_EQ(board_->Over(struck), kWorkers - 1);
  EXPECT_EQ(board_->groups, 2) << "those who are left form another group";
}

TEST_F(DeviceSumTest, WhereADeviceFailsTheMeshTakesOverForGood) {
  Run(Strike::kDeviceFails);
  const std::int64_t struck = board_->struck;
  ASSERT_LT(struck, kSteps);
  for (auto step = struck; step < kSteps; ++step) {
    EXPECT_EQ(board_->On(step), 0) << step;
    EXPECT_EQ(board_->Over(step), kWorkers) << step;
  }
  EXPECT_EQ(board_->groups, 1);
}

// Alone in its groups; it can be held up before it joins one.
class LoneDevice final : public DeviceSum {
 public:
  std::atomic<bool> held_up{true};  // until the group is left
  std::atomic<int> joins{0};

  std::string Device() const override { return "the only one"; }
  void Begin() override { left_ = false; }
  Result<std::string> Invite() override {
    if (held_up) left_.wait(false);
    return "come";
  }
  Result<void> Join(const std::string& /*invitation*/, int /*rank*/, int /*size*/) override {
    ++joins;
    if (held_up) left_.wait(false);  // the others never come
    return left_ ? Fail(ErrorCode::kUnavailable, "left") : Result<void>();
  }
  void Leave() override {
    left_ = true;
    left_.notify_all();
  }
  Result<std::vector<ShardResult>> Compute(const Task& /*task*/,
                                           std::span<const float> /*parameters*/,
                                           std::span<float> /*gradient*/,
                                           ShardProgress& /*progress*/) override {
    return Fail(ErrorCode::kInternal, "nobody computes here");
  }

 private:
  std::atomic<bool> left_{false};
};

TEST(DeviceGroupTest, AGroupThatIsLeftBeforeItIsJoinedHoldsUpNobodyAndTheNextIsJoined) {
  LoneDevice device;
  TestFabric fabric(0, 1);
  { const DeviceGroup left(device, fabric, 1); }
  EXPECT_EQ(device.joins, 1) << "after it was left";
  device.held_up = false;
  const DeviceGroup next(device, fabric, 1);
  while (!next.joined()) std::this_thread::yield();
  EXPECT_EQ(device.joins, 2);
}

}  // namespace
}  // namespace muster::train

#include "train/run/view_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "train/members/folder_store.h"
#include "train/run/trainer.h"

namespace muster::train {
namespace {

constexpr int kStages = 3, kShards = 5;
constexpr std::int64_t kSteps = 2;

// What the stages do, as they do it: "F0 F1 B0 " by step and stage.
class Diary {
 public:
  // `meets`: a shard goes forward only when each stage has the one that is its turn: one stage
  // shard k, the stage before it shard k + 1, and so on.
  explicit Diary(bool meets) : meets_(meets) {}

  void Forward(std::int64_t step, int stage, int shard) {
    std::unique_lock lock(mutex_);
    done_[{step, stage}] += "F" + std::to_string(shard) + " ";
    forward_.insert({step, stage, shard});
    changed_.notify_all();
    if (!meets_ || alone_) return;
    const auto met = [&] {
      for (int other = 0; other < kStages; ++other) {
        const int theirs = shard + stage - other;
        const bool has_turn = theirs >= 0 && theirs < kShards;
        if (has_turn && !forward_.contains({step, other, theirs})) return false;
      }
      return true;
    };
    alone_ = !changed_.wait_for(lock, std::chrono::seconds(30), met);
  }
  void Back(std::int64_t step, int stage, int shard) {
    const std::lock_guard lock(mutex_);
    done_[{step, stage}] += "B" + std::to_string(shard) + " ";
  }

  // When all have ended.
  std::string Of(std::int64_t step, int stage) { return done_[{step, stage}]; }
  bool alone() const { return alone_; }  // a stage waited for the others in vain

 private:
  const bool meets_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::int64_t, int>, std::string> done_;
  std::set<std::tuple<std::int64_t, int, int>> forward_;
  bool alone_ = false;
};

// A stage that hands on the number of the shard.
class NotedStage final : public ColumnWork {
 public:
  NotedStage(Diary& diary, int stage) : diary_(diary), stage_(stage) {}

  std::vector<std::size_t> LayerFloats() const override { return {16}; }
  void Start(std::uint64_t /*seed*/, std::span<float> parameters) const override {
    std::ranges::fill(parameters, 0.0F);
  }
  bool Forward(std::int64_t step, int shard, std::span<const float> /*parameters*/,
               Neighbours& neighbours) override {
    if (!Get(stage_ - 1, TagKind::kActivation, shard, neighbours)) return false;
    diary_.Forward(step, stage_, shard);
    Hand(stage_ + 1, TagKind::kActivation, shard, neighbours);
    return true;
  }
  ShardResult Backward(std::int64_t step, int shard, std::span<const float> /*parameters*/,
                       std::span<float> gradient, Neighbours& neighbours,
                       ShardProgress& /*progress*/) override {
    if (!Get(stage_ + 1, TagKind::kGradient, shard, neighbours)) return {};
    diary_.Back(step, stage_, shard);
    std::ranges::fill(gradient, 1.0F);
    Hand(stage_ - 1, TagKind::kGradient, shard, neighbours);
    return {1, 1};
  }

 private:
  static bool Exists(int stage) { return stage >= 0 && stage < kStages; }
  static bool Get(int from, TagKind kind, int shard, Neighbours& neighbours) {
    float value = static_cast<float>(shard);
    if (Exists(from) && !neighbours.Receive(from, kind, 0, std::span(&value, 1))) return false;
    EXPECT_EQ(value, static_cast<float>(shard));
    return true;
  }
  static void Hand(int to, TagKind kind, int shard, Neighbours& neighbours) {
    const auto value = static_cast<float>(shard);
    if (Exists(to)) neighbours.Send(to, kind, 0, std::span(&value, 1));
  }

  Diary& diary_;
  const int stage_;
};

class NotedStages final : public Workload {
 public:
  explicit NotedStages(Diary& diary) : diary_(diary) {}
  std::string Describe() const override { return "model noted"; }
  std::string ComputedWith() const override { return ""; }
  std::vector<std::size_t> LayerFloats() const override { return {kStages, 16}; }
  void Start(std::uint64_t /*seed*/, std::span<float> /*parameters*/) const override {}
  ShardResult Compute(std::int64_t /*step*/, int /*shard*/, std::span<const float> /*parameters*/,
                      std::span<float> /*gradient*/, ShardProgress& /*progress*/) override {
    ADD_FAILURE() << "it is computed in stages";
    return {};
  }
  int StateFloats() const override { return 0; }
  void Update(const UpdateStep& /*step*/, std::span<const float> gradient,
              std::span<const float> parameters, std::span<const float> /*state*/,
              std::span<float> new_parameters, std::span<float> /*new_state*/) const override {
    std::ranges::transform(parameters, gradient, new_parameters.begin(), std::plus());
  }
  Result<std::unique_ptr<ColumnWork>> Column(const Cut& cut) override {
    return std::make_unique<NotedStage>(diary_, cut.stage);
  }

 private:
  Diary& diary_;
};

// Workers of one job, each a thread with a mesh of its own.
void RunPipeline(Diary& diary, int workers) {
  const TempFolder folder;
  const auto strategy = ParseStrategy("pipeline:stages=3,micro=5", kShards);
  ASSERT_TRUE(strategy) << strategy.error().message;
  TrainOptions options;
  options.strategy = *strategy;
  options.mesh.job = "test";
  options.mesh.secret = "a secret of the test";
  options.mesh.timeout_ms = 20'000;  // a loaded machine may be slow
  options.steps = kSteps;
  options.min_workers = workers;
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([&] {
      NotedStages stages(diary);
      FolderStore store(folder / "store");
      SystemClock clock;
      const std::atomic<bool> leave{false};
      const auto end = Train(stages, store, clock, options, {}, leave);
      EXPECT_TRUE(end) << (end ? "" : end.error().message);
    });
  }
  for (auto& thread : threads) thread.join();
}

// Shards that went forward and have yet to come back.
int MostHeld(const std::string& done) {
  int held = 0, most = 0;
  for (const char what : done) {
    if (what == 'F') most = std::max(most, ++held);
    if (what == 'B') --held;
  }
  return most;
}

void Expect1F1B(Diary& diary) {
  for (std::int64_t step = 0; step < kSteps; ++step) {
    EXPECT_EQ(diary.Of(step, 0), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 ");
    EXPECT_EQ(diary.Of(step, 1), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4 ");
    EXPECT_EQ(diary.Of(step, 2), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 ");
    for (int stage = 0; stage < kStages; ++stage) {
      EXPECT_EQ(MostHeld(diary.Of(step, stage)), kStages - stage) << "stage " << stage;
    }
  }
}

TEST(PipelineTest, StagesComputeShardsThatFollowEachOtherAtTheSameTime) {
  Diary diary(true);
  RunPipeline(diary, kStages);
  EXPECT_FALSE(diary.alone());
  Expect1F1B(diary);
}

TEST(PipelineTest, TheOrderIsTheSameWhereOneWorkerHasAllStages) {
  Diary diary(false);
  RunPipeline(diary, 1);
  Expect1F1B(diary);
}

}  // namespace
}  // namespace muster::train

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "train/data/synthetic.h"
#include "train/members/folder_store.h"
#include "train/run/model_workload.h"
#include "train/run/replay.h"
#include "train/run/trainer.h"
#include "train/run/update_log.h"

namespace muster::train {
namespace {

constexpr int kShards = 4;
constexpr std::size_t kBucketFloats = 300;

// A model, and something that happens before each unit, and after each update of a bucket.
class Hooked final : public Workload {
 public:
  Hooked(std::unique_ptr<ModelWorkload> model, std::function<void()> before,
         std::function<void()> after)
      : model_(std::move(model)), before_(std::move(before)), after_(std::move(after)) {}
  std::string Describe() const override { return model_->Describe(); }
  std::string ComputedWith() const override { return model_->ComputedWith(); }
  std::vector<std::size_t> LayerFloats() const override { return model_->LayerFloats(); }
  void Start(std::uint64_t seed, std::span<float> parameters) const override {
    model_->Start(seed, parameters);
  }
  ShardResult Compute(std::int64_t step, int shard, std::span<const float> parameters,
                      std::span<float> gradient, ShardProgress& progress) override {
    if (before_) before_();
    return model_->Compute(step, shard, parameters, gradient, progress);
  }
  int StateFloats() const override { return model_->StateFloats(); }
  void Update(const UpdateStep& step, std::span<const float> gradient,
              std::span<const float> parameters, std::span<const float> state,
              std::span<float> new_parameters, std::span<float> new_state) const override {
    model_->Update(step, gradient, parameters, state, new_parameters, new_state);
    if (after_) after_();
  }

 private:
  std::unique_ptr<ModelWorkload> model_;
  std::function<void()> before_, after_;
};

ModelRun Teacher() {
  ModelRun run;
  run.model = "mlp:16,24,24,1";
  run.data = "teacher";
  run.batch = 16;
  run.shards = kShards;
  return run;
}

// Workers and servers of a job, each a thread with a mesh of its own.
class AsyncTest : public testing::Test {
 protected:
  struct Gang {
    std::string strategy;
    ModelRun run = Teacher();
    std::int64_t steps = 21;
    int servers = 2;
    std::vector<std::function<void()>> workers;  // what each does before a unit
    std::function<void()> updated = {};          // after each bucket of each part
  };

  static std::unique_ptr<Workload> Open(const ModelRun& run, std::function<void()> before = {},
                                        std::function<void()> after = {}) {
    auto model = ModelWorkload::Open(run);
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    return std::make_unique<Hooked>(std::move(*model), std::move(before), std::move(after));
  }

  // The parameters at the end.
  std::vector<float> RunGang(const Gang& gang) {
    std::vector<float> parameters;
    std::mutex mutex;
    std::vector<std::thread> threads;
    const auto workers = gang.workers.size();
    const auto everybody = workers + static_cast<std::size_t>(gang.servers);
    for (std::size_t i = 0; i < everybody; ++i) {
      threads.emplace_back([&, i] {
        FolderStore store(folder_ / "store");
        SystemClock clock;
        const auto strategy = ParseStrategy(gang.strategy, kShards);
        ASSERT_TRUE(strategy) << strategy.error().message;
        TrainOptions options;
        options.strategy = *strategy;
        options.mesh.job = "test";
        options.mesh.secret = "a secret of the test";
        options.mesh.timeout_ms = 20'000;  // a loaded machine may be slow
        options.steps = gang.steps;
        options.seed = gang.run.seed;
        options.server = i >= workers;
        options.min_workers = static_cast<int>(everybody);
        options.bucket_floats = kBucketFloats;
        options.collect = true;
        options.update_log = log();
        TrainEvents events;
        events.collected = [&](const std::vector<std::vector<float>>& columns) {
          const std::lock_guard lock(mutex);
          if (parameters.empty()) parameters = columns.front();
          EXPECT_EQ(parameters, columns.front()) << "all end with the same";
        };
        const std::atomic<bool> leave{false};
        const auto workload = Open(gang.run, i < workers ? gang.workers[i] : nullptr, gang.updated);
        const auto end = Train(*workload, store, clock, options, events, leave);
        EXPECT_TRUE(end) << (end ? "" : end.error().message);
      });
    }
    for (auto& thread : threads) thread.join();
    return parameters;
  }

  std::vector<UpdateRound> Rounds() {
    auto rounds = ReadUpdateLogs(log());
    EXPECT_TRUE(rounds) << (rounds ? "" : rounds.error().message);
    return rounds ? std::move(*rounds) : std::vector<UpdateRound>();
  }
  static Result<std::vector<float>> ReplayOf(const ModelRun& run,
                                             const std::vector<UpdateRound>& rounds) {
    const auto workload = Open(run);
    return Replay(*workload, BucketsOf(workload->LayerFloats(), kBucketFloats), run.seed, rounds);
  }
  // By how many units the fastest worker was ahead of the slowest, in what was applied.
  static std::int64_t MostAhead(const std::vector<UpdateRound>& rounds) {
    std::int64_t most = 0;
    for (const auto& round : rounds) {
      for (const auto& log : round) {
        std::map<int, std::int64_t> applied;
        for (const auto& update : log.updates) applied[update.worker] = 0;
        for (const auto& update : log.updates) {
          ++applied[update.worker];
          const auto [least, largest] = std::ranges::minmax(std::views::values(applied));
          most = std::max(most, largest - least);
        }
      }
    }
    return most;
  }
  // How many updates of its part came between a gradient's parameters and the gradient.
  static std::int64_t MostStale(const std::vector<UpdateRound>& rounds) {
    std::int64_t most = 0;
    for (const auto& round : rounds) {
      for (const auto& log : round) {
        auto version = log.from * log.shards;
        for (const auto& update : log.updates) {
          most = std::max(most, version++ - update.bases[static_cast<std::size_t>(log.part)]);
        }
      }
    }
    return most;
  }
  void ExpectOptimum(const std::string& mode) {
    Gang gang{.strategy = "server:servers=2," + mode, .steps = 400, .workers = {{}, {}, {}}};
    gang.run.model = "mlp:8,1";
    gang.run.data = "linear";
    gang.run.optimizer = "sgd";
    gang.run.rate = "cosine:rate=0.5,steps=1600";  // so many updates
    gang.run.batch = 64;
    const auto parameters = RunGang(gang);
    const auto data = OpenDataset("linear");
    ASSERT_TRUE(data);
    const auto best = OptimumOf(*data->train);
    ASSERT_EQ(parameters.size(), best.weights.size());
    for (std::size_t i = 0; i < best.weights.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(parameters[i]), best.weights[i], 0.001) << i;
    }
  }
  std::string log() const { return folder_ / "updates"; }

  const TempFolder folder_;
};

TEST_F(AsyncTest, AReplayOfTheLogGivesTheBitsOfTheRun) {
  Gang gang{.strategy = "server:servers=2,mode=async,round=7", .workers = {{}, {}, {}}};
  const auto parameters = RunGang(gang);
  const auto rounds = Rounds();
  ASSERT_EQ(rounds.size(), 3U);
  EXPECT_EQ(rounds[0].size(), 2U);
  const auto replayed = ReplayOf(gang.run, rounds);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(*replayed, parameters);
  auto other = rounds;  // in another order it is another result
  std::swap(other[2][0].updates[1].unit, other[2][0].updates[2].unit);
  EXPECT_NE(*ReplayOf(gang.run, other), parameters);
}

TEST_F(AsyncTest, ABoundedRunIsReplayedToo) {
  Gang gang{.strategy = "server:servers=2,mode=bounded,staleness=1,round=7",
            .workers = {{}, {}, {}}};
  const auto parameters = RunGang(gang);
  const auto rounds = Rounds();
  EXPECT_LE(MostAhead(rounds), 2);  // staleness, and the one in hand
  EXPECT_LE(MostStale(rounds), 6);  // (3 - 1) * (2 * staleness + 1)
  const auto replayed = ReplayOf(gang.run, rounds);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(*replayed, parameters);
}

TEST_F(AsyncTest, WorkersKeepThePartsWhereThereAreNoServers) {
  Gang gang{.strategy = "server:servers=2,mode=async,round=7",
            .steps = 10,  // a last round that is shorter, and one more
            .servers = 0,
            .workers = {{}, {}, {}}};
  const auto parameters = RunGang(gang);
  const auto rounds = Rounds();
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].size(), 3U);
  const auto replayed = ReplayOf(gang.run, rounds);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(*replayed, parameters);
}

// A slow worker, which waits in its first unit until the fast one has begun so many, and until so
// much of it was applied.
struct SlowAndFast {
  std::mutex mutex;
  std::condition_variable news;
  int begun = 0;            // by the fast one
  std::size_t updates = 0;  // of buckets of parts, by servers
  bool held = false;
  bool ran_on = false;

  void Updated() {
    const std::lock_guard lock(mutex);
    ++updates;
    news.notify_all();
  }
  void Fast() {
    const std::lock_guard lock(mutex);
    ++begun;
    news.notify_all();
  }
  // `grace_ms`: how long it is looked whether the fast one begins another.
  void Slow(int units, std::size_t least_updates, int grace_ms) {
    std::unique_lock lock(mutex);
    if (std::exchange(held, true)) return;
    news.wait(lock, [&] { return begun >= units && updates >= least_updates; });
    ran_on =
        news.wait_for(lock, std::chrono::milliseconds(grace_ms), [&] { return begun > units; });
  }
};

TEST_F(AsyncTest, ASlowWorkerHoldsTheOthersBackWhenStalenessIsBounded) {
  SlowAndFast pair;
  std::size_t of_four_units = 0;  // at both servers
  for (const auto& bucket : BucketsOf(Open(Teacher())->LayerFloats(), kBucketFloats)) {
    for (const int part : {0, 1}) of_four_units += PartOf(bucket, 2, part).size() > 0 ? 4 : 0;
  }
  Gang gang{.strategy = "server:servers=2,mode=bounded,staleness=3,round=21",
            .workers = {[&] { pair.Slow(4, of_four_units, 100); }, [&] { pair.Fast(); }},
            .updated = [&] { pair.Updated(); }};
  RunGang(gang);
  EXPECT_FALSE(pair.ran_on);
  const auto rounds = Rounds();
  ASSERT_EQ(rounds.size(), 1U);
  EXPECT_EQ(MostAhead(rounds), 4);  // three, and the one in hand
}

TEST_F(AsyncTest, NothingHoldsAWorkerBackWhenItIsNot) {
  SlowAndFast pair;
  Gang gang{.strategy = "server:servers=2,mode=async,round=21",
            .workers = {[&] { pair.Slow(40, 0, 0); }, [&] { pair.Fast(); }}};
  RunGang(gang);
  EXPECT_GE(MostAhead(Rounds()), 39);
}

TEST_F(AsyncTest, ReachesTheOptimumOfALinearModel) { ExpectOptimum("mode=async"); }

TEST_F(AsyncTest, ReachesTheOptimumWhenStalenessIsBounded) {
  ExpectOptimum("mode=bounded,staleness=2");
}

class UpdateLogTest : public testing::Test {
 protected:
  // Two parts of a round of three units.
  static UpdateLog Log(std::int64_t from, int part, std::uint64_t generation) {
    UpdateLog out{from, from + 1, 3, 2, part, generation, {}};
    for (const std::int64_t unit : {2, 0, 1}) {
      out.updates.push_back({3 * from + unit, generation, 4, {3 * from, 3 * from}});
    }
    return out;
  }
  void Write(const UpdateLog& log) { ASSERT_TRUE(WriteUpdateLog(folder_.path(), log)); }
  Result<std::vector<UpdateRound>> Read() { return ReadUpdateLogs(folder_.path()); }

  const TempFolder folder_;
};

TEST_F(UpdateLogTest, TheNewestWholeGenerationOfEachRoundCounts) {
  for (const int part : {0, 1}) {
    Write(Log(0, part, 1));
    Write(Log(0, part, 4));
    Write(Log(1, part, 2));
  }
  Write(Log(1, 0, 3));  // the other part was never written
  Write(Log(2, 1, 3));
  const auto rounds = Read();
  ASSERT_TRUE(rounds) << rounds.error().message;
  const std::vector<UpdateRound> expected{{Log(0, 0, 4), Log(0, 1, 4)},
                                          {Log(1, 0, 2), Log(1, 1, 2)}};
  EXPECT_EQ(*rounds, expected);
}

TEST_F(UpdateLogTest, AFolderHasTheUpdatesOfOneRun) {
  FolderStore run(folder_ / "one"), other(folder_ / "other");
  const auto log = folder_ / "updates/of/it";
  EXPECT_TRUE(OpenUpdateLog(log, run));
  EXPECT_TRUE(OpenUpdateLog(log, run));
  const auto refused = OpenUpdateLog(log, other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(OpenUpdateLog("/proc/nowhere", run));
}

TEST_F(UpdateLogTest, AUnitThatComesTwiceIsAMistake) {
  auto log = Log(0, 0, 1);
  log.updates[2].unit = 0;
  Write(log);
  Write(Log(0, 1, 1));
  EXPECT_FALSE(Read());
}

TEST_F(UpdateLogTest, AGradientOfParametersToComeIsAMistake) {
  auto log = Log(0, 0, 1);
  log.updates[0].bases[0] = 1;
  Write(log);
  Write(Log(0, 1, 1));
  EXPECT_FALSE(Read());
}

// Else a replay would look for the versions of a part that a log knows nothing of.
TEST_F(UpdateLogTest, LogsThatDisagreeOnHowTheRunWasCutAreDamaged) {
  const auto expect_damaged = [](const UpdateLog& log) {
    const TempFolder folder;
    ASSERT_TRUE(WriteUpdateLog(folder.path(), Log(0, 0, 1)));
    ASSERT_TRUE(WriteUpdateLog(folder.path(), log));
    const auto read = ReadUpdateLogs(folder.path());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    EXPECT_NE(read.error().message.find("damaged"), std::string::npos) << read.error().message;
  };
  auto more_parts = Log(0, 1, 1);
  more_parts.parts = 3;
  for (auto& update : more_parts.updates) update.bases.push_back(0);
  expect_damaged(more_parts);
  auto fewer_shards = Log(0, 1, 1);
  fewer_shards.shards = 1;
  fewer_shards.updates = {{0, 1, 4, {0, 0}}};
  expect_damaged(fewer_shards);
  auto again = Log(0, 0, 1);  // the same part under another name
  again.parts = 1;
  for (auto& update : again.updates) update.bases.pop_back();
  expect_damaged(again);
}

TEST_F(UpdateLogTest, AnotherVersionIsRefusedAndSaysSo) {
  folder_.Write("round-0-1-0-of-1", "muster-updates-2 0 1 3 0 1 1 3\n0 1 4 0\n1 1 4 0\n2 1 4 0\n");
  const auto read = Read();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  EXPECT_NE(read.error().message.find("of version 2; this program reads version 1"),
            std::string::npos)
      << read.error().message;
  EXPECT_NE(read.error().hint.find("the version of Muster that wrote it"), std::string::npos);
}

TEST_F(UpdateLogTest, AFileThatIsCutShortIsAMistake) {
  folder_.Write("round-0-1-0-of-1", "muster-updates-1 0 1 3 0 1 1 3\n0 1 4 0\n1 1 4 0\n");
  EXPECT_FALSE(Read());
}

}  // namespace
}  // namespace muster::train

#include "train/run/batch_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/temp_folder.h"
#include "train/data/synthetic.h"
#include "train/members/folder_store.h"
#include "train/run/model_workload.h"
#include "train/run/trainer.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NoiseScale ScaleOf(double samples) { return {.signal = 1, .noise = samples, .steps = 1}; }

// Sizes after each of these scales, in batches, was measured as often as it takes.
std::vector<std::int64_t> SizesAfter(BatchPlan& plan, const std::vector<double>& scales) {
  constexpr double kBatch = 64;
  std::vector<std::int64_t> out;
  for (const double scale : scales) {
    for (int i = 0; i < BatchPlan::kMeasured; ++i) plan.Measured(ScaleOf(scale * kBatch), kBatch);
    out.push_back(plan.next().batches);
    EXPECT_DOUBLE_EQ(plan.next().noise, scale);
  }
  return out;
}

TEST(BatchPlanTest, GrowsOneSizeAtATimeToTheLargest) {
  BatchPlan plan({BatchRule::kNoise, 12});
  EXPECT_EQ(plan.next().batches, 1);
  EXPECT_THAT(SizesAfter(plan, {1e6, 1e6, 1e6, 1e6, 1e6}), ElementsAre(3, 7, 11, 11, 11));
}

TEST(BatchPlanTest, GrowsNoFurtherThanTheNoiseScale) {
  BatchPlan plan({BatchRule::kLinear, 1023});
  EXPECT_THAT(SizesAfter(plan, {2.9, 3, 6.9, 7, 14, 14}), ElementsAre(1, 3, 3, 7, 7, 7));
}

TEST(BatchPlanTest, ShrinksOnlyWhenTheScaleIsBelowTheNextSmallerSize) {
  BatchPlan plan({BatchRule::kLinear, 11});
  plan.Follow({11, 20});
  EXPECT_THAT(SizesAfter(plan, {8, 7, 6.9, 3.5, 2.9, 1, 0.5}), ElementsAre(11, 11, 7, 7, 3, 3, 1));
}

TEST(BatchPlanTest, DecidesNothingBeforeThereAreEnoughMeasurementsSinceTheLastChange) {
  BatchPlan plan({BatchRule::kNoise, 15});
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < 2 * BatchPlan::kMeasured; ++i) {
    plan.Measured(ScaleOf(1e6), 64);
    sizes.push_back(plan.next().batches);
  }
  EXPECT_THAT(sizes, ElementsAre(1, 1, 1, 1, 3, 3, 3, 3, 3, 7));
  plan.Measured(ScaleOf(1e6), 64);
  plan.Follow({3, 1e6});  // whoever is the chief has not seen it yet
  for (int i = 0; i < BatchPlan::kMeasured - 1; ++i) plan.Measured(ScaleOf(1e6), 64);
  EXPECT_EQ(plan.next().batches, 3);
}

TEST(BatchPlanTest, KeepsItsSizeWhileNoiseHidesTheSignal) {
  BatchPlan plan({BatchRule::kNoise, 7});
  plan.Follow({3, 5});
  for (int i = 0; i < 20; ++i) plan.Measured({.signal = -1, .noise = 10, .steps = 50}, 64);
  EXPECT_EQ(plan.next(), (NextBatch{3, 5}));
}

TEST(BatchPlanTest, NeverAdaptsWhereThereIsNoRule) {
  BatchPlan plan({});
  for (int i = 0; i < 20; ++i) plan.Measured(ScaleOf(1e6), 64);
  EXPECT_EQ(plan.next(), NextBatch());
  EXPECT_EQ(MostBatches({}), 1);
}

TEST(BatchPlanTest, TheLargestStepIsOdd) {
  EXPECT_EQ(MostBatches({BatchRule::kLinear, 3}), 3);
  EXPECT_EQ(MostBatches({BatchRule::kLinear, 8}), 7);
}

TEST(BatchPlanTest, MistakesInASpecAreNamed) {
  EXPECT_EQ(*ParseBatchSpec("sqrt:most=9"), (BatchSpec{BatchRule::kSquareRoot, 9}));
  EXPECT_THAT(Describe(ParseBatchSpec("cubic:most=9").error()), HasSubstr("noise:most=8"));
  EXPECT_THAT(Describe(ParseBatchSpec("linear").error()), HasSubstr("linear:most=8"));
  for (const char* most : {"1", "2", "1024", "-3", "many", "4.5"}) {
    const auto read = ParseBatchSpec(std::string("noise:most=") + most);
    ASSERT_FALSE(read) << most;
    EXPECT_THAT(Describe(read.error()), HasSubstr("from 3 to 1023")) << most;
  }
}

// Workers of a job, each a thread with a mesh of its own, on data whose best model is known.
class AdaptedRunTest : public testing::Test {
 protected:
  static constexpr std::int64_t kBatch = 16;

  struct Gang {
    std::string strategy = "data";
    std::string batches = {};  // empty: they do not adapt
    std::string optimizer = "sgd";
    std::string rate = "cosine:rate=0.1,steps=1200";
    std::int64_t steps = 1200;
    int workers = 2, servers = 0;
    bool exact = false;
  };
  // What all workers said of a step, which must be the same.
  struct Step {
    std::int64_t batches = 0;
    double loss = 0;
    std::vector<float> parameters;
    friend bool operator==(const Step&, const Step&) = default;
  };
  struct Outcome {
    std::map<std::int64_t, Step> steps;
    std::vector<float> parameters;
    std::vector<Error> errors;
    int disagreements = 0;
  };

  static TrainOptions OptionsOf(const Gang& gang, int index) {
    TrainOptions options;
    options.strategy = *ParseStrategy(gang.strategy, 4);
    options.mesh.job = "test";
    options.mesh.secret = "a secret of the test";
    options.mesh.timeout_ms = 20'000;  // a loaded machine may be slow
    options.steps = gang.steps;
    options.exact = gang.exact;
    options.noise_every = 4;
    options.bucket_floats = 5;
    options.collect = true;
    options.server = index >= gang.workers;
    options.min_workers = gang.workers + gang.servers;
    if (!gang.batches.empty()) options.batches = *ParseBatchSpec(gang.batches);
    return options;
  }

  static std::unique_ptr<ModelWorkload> Open(const Gang& gang) {
    ModelRun run;
    run.model = "mlp:8,1";
    run.data = "linear";
    run.optimizer = gang.optimizer;
    run.rate = gang.rate;
    run.batch = kBatch;
    run.shards = 4;
    auto workload = ModelWorkload::Open(run);
    EXPECT_TRUE(workload) << workload.error().message;
    return std::move(*workload);
  }

  Outcome RunGang(const Gang& gang) {
    Outcome out;
    std::mutex mutex;
    std::vector<std::thread> threads;
    const std::string folder = folder_ / ("store" + std::to_string(runs_++));
    for (int i = 0; i < gang.workers + gang.servers; ++i) {
      threads.emplace_back([&, i] {
        const auto options = OptionsOf(gang, i);
        const auto workload = Open(gang);
        FolderStore store(folder);
        SystemClock clock;
        TrainEvents events;
        events.stepped = [&](const StepReport& report) {
          Step step{report.batches, report.loss, {}};
          EXPECT_EQ(report.samples, report.batches * kBatch);
          for (const auto& column : report.columns) {
            step.parameters.assign(column.parameters.begin(), column.parameters.end());
          }
          const std::lock_guard lock(mutex);
          auto& known = out.steps.emplace(report.step, step).first->second;
          if (known.parameters.empty()) known.parameters = step.parameters;
          if (step.parameters.empty()) step.parameters = known.parameters;  // a server's
          if (!(known == step)) ++out.disagreements;
        };
        events.collected = [&](const std::vector<std::vector<float>>& columns) {
          const std::lock_guard lock(mutex);
          out.parameters = columns.front();
        };
        const std::atomic<bool> leave{false};
        const auto end = Train(*workload, store, clock, options, events, leave);
        const std::lock_guard lock(mutex);
        if (!end) out.errors.push_back(end.error());
      });
    }
    for (auto& thread : threads) thread.join();
    return out;
  }

  // Every batch once, in order, and nobody differs about a step.
  static std::int64_t ExpectSound(const Outcome& out, const Gang& gang) {
    EXPECT_TRUE(out.errors.empty()) << Describe(out.errors.front());
    EXPECT_EQ(out.disagreements, 0);
    std::int64_t completed = 0, most = 0;
    for (const auto& [after, step] : out.steps) {
      EXPECT_EQ(after, completed + step.batches);
      EXPECT_EQ(step.batches % 2, 1);
      completed = after;
      most = std::max(most, step.batches);
    }
    EXPECT_EQ(completed, gang.steps);
    return most;
  }

  static void ExpectOptimum(const Outcome& out, double tolerance) {
    const auto data = OpenDataset("linear");
    ASSERT_TRUE(data);
    const auto best = OptimumOf(*data->train);
    ASSERT_EQ(out.parameters.size(), best.weights.size());
    for (std::size_t i = 0; i < best.weights.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(out.parameters[i]), best.weights[i], tolerance) << i;
    }
  }

  const TempFolder folder_;
  int runs_ = 0;
};

TEST_F(AdaptedRunTest, EveryRuleGrowsTheBatchAndReachesTheOptimum) {
  for (const char* rule : {"linear:most=15", "sqrt:most=15", "noise:most=15"}) {
    SCOPED_TRACE(rule);
    const Gang gang{.batches = rule, .workers = 3};
    const auto out = RunGang(gang);
    EXPECT_EQ(ExpectSound(out, gang), 15);
    EXPECT_LT(out.steps.size(), 900U) << "fewer steps than batches";
    ExpectOptimum(out, 0.005);
  }
}

class AllOfIt final : public ShardProgress {
 public:
  bool Need(Extent /*parameters*/) override { return true; }
  bool Ready(std::size_t /*first*/) override { return true; }
};

// By hand, from the parameters before it: the mean over all its samples, each taken once, and the
// rate of one batch times the factor.
TEST_F(AdaptedRunTest, AStepIsTheMeanOfItsBatchesAtTheRateOfTheRule) {
  constexpr double kRate = 0.1;
  for (const auto rule : {BatchRule::kLinear, BatchRule::kSquareRoot}) {
    const bool linear = rule == BatchRule::kLinear;
    const Gang gang{.batches = linear ? "linear:most=3" : "sqrt:most=3",
                    .rate = fmt::format("constant:rate={}", kRate),
                    .workers = 3};
    const auto out = RunGang(gang);
    ASSERT_EQ(ExpectSound(out, gang), 3);
    const auto workload = Open(gang);
    AllOfIt progress;
    for (auto at = out.steps.begin(); std::next(at) != out.steps.end(); ++at) {
      const auto& before = at->second.parameters;
      const auto& [last, step] = *std::next(at);
      const auto batches = static_cast<double>(step.batches);
      std::vector<double> mean(before.size());
      double loss = 0;
      for (std::int64_t i = 0; i < 4 * step.batches; ++i) {
        std::vector<float> gradient(before.size());
        loss +=
            workload
                ->Compute(at->first + i / 4, static_cast<int>(i % 4), before, gradient, progress)
                .loss;
        for (std::size_t j = 0; j < mean.size(); ++j) {
          mean[j] += static_cast<double>(gradient[j]) / batches;
        }
      }
      ASSERT_NEAR(step.loss, loss / (batches * kBatch), 1e-6) << last;
      const double rate = kRate * (linear ? batches : std::sqrt(batches));
      for (std::size_t j = 0; j < mean.size(); ++j) {
        const auto expected = static_cast<double>(before[j]) - rate * mean[j];
        ASSERT_NEAR(static_cast<double>(step.parameters[j]), expected, 1e-5) << last;
      }
    }
  }
}

TEST_F(AdaptedRunTest, AdamReachesTheOptimumToo) {
  const Gang gang{
      .batches = "noise:most=15", .optimizer = "adam", .rate = "cosine:rate=0.03,steps=1200"};
  const auto out = RunGang(gang);
  EXPECT_EQ(ExpectSound(out, gang), 15);
  ExpectOptimum(out, 0.005);
}

TEST_F(AdaptedRunTest, LanesAndServersAgreeWithWorkers) {
  for (const char* strategy : {"mirrored:lanes=2", "server:servers=2", "central"}) {
    SCOPED_TRACE(strategy);
    Gang gang{.strategy = strategy, .batches = "noise:most=7"};
    gang.servers = ParseStrategy(strategy, 4)->servers;
    const auto out = RunGang(gang);
    EXPECT_EQ(ExpectSound(out, gang), 7);
    ExpectOptimum(out, 0.005);
  }
}

// One worker sums in the order of the shards, whatever the batch.
TEST_F(AdaptedRunTest, TheSameNumbersGiveTheSameSizesAndBits) {
  const Gang gang{.batches = "linear:most=15", .workers = 1};
  const auto out = RunGang(gang), again = RunGang(gang);
  EXPECT_EQ(ExpectSound(out, gang), 15);
  EXPECT_EQ(out.steps, again.steps);
}

TEST_F(AdaptedRunTest, ARunWithoutItKeepsItsBatchWhateverTheNoise) {
  for (const bool exact : {true, false}) {
    const Gang gang{.exact = exact};
    EXPECT_EQ(ExpectSound(RunGang(gang), gang), 1);
  }
}

TEST_F(AdaptedRunTest, IsRefusedWhereItCannotBe) {
  const auto refused = [&](const Gang& gang, const char* what) {
    const auto out = RunGang(gang);
    ASSERT_EQ(out.errors.size(), 1U) << what;
    EXPECT_EQ(out.errors.front().code, ErrorCode::kInvalid);
    EXPECT_THAT(Describe(out.errors.front()), HasSubstr(what));
    EXPECT_TRUE(out.steps.empty());
  };
  const char* const batches = "noise:most=7";
  refused({.batches = batches, .workers = 1, .exact = true}, "--exact false");
  refused({.strategy = "server:mode=async", .batches = batches, .workers = 1}, "asynchronous");
  refused({.strategy = "pipeline:stages=2", .batches = batches, .workers = 1}, "the model is cut");
  refused({.strategy = "hybrid:data=1,stages=1,slices=1,micro=4", .batches = batches, .workers = 1},
          "--shards 2");
}

}  // namespace
}  // namespace muster::train

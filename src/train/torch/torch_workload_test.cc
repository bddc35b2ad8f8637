#include "train/torch/torch_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

namespace muster::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Two layers, between them one that nothing depends on; a norm on request.
class Net : public torch::nn::Module {
 public:
  explicit Net(bool norm)
      : first(register_module("first", torch::nn::Linear(3, 4))),
        idle(register_module("idle", torch::nn::Linear(2, 2))),
        last(register_module("last", torch::nn::Linear(4, 1))) {
    if (norm) batch_norm = register_module("norm", torch::nn::BatchNorm1d(4));
  }
  torch::Tensor Forward(const torch::Tensor& inputs) {
    auto x = torch::tanh(first(inputs));
    if (batch_norm) x = batch_norm(x);
    return last(torch::dropout(x, 0.5, true));
  }
  torch::nn::Linear first, idle, last;
  torch::nn::BatchNorm1d batch_norm{nullptr};
};

TorchJob JobOf(bool norm) {
  TorchJob out;
  out.batch = 10;
  out.make = [norm] { return std::make_shared<Net>(norm); };
  out.data = [](std::int64_t step, int shard) {
    auto inputs = torch::arange(15, torch::kFloat32).view({5, 3}) / 10 + step + shard;
    return TorchBatch{inputs, inputs.sum(1, true), shard == 1 ? 0 : 5};
  };
  out.loss = [](torch::nn::Module& module, const TorchBatch& batch) {
    return (dynamic_cast<Net&>(module).Forward(batch.inputs) - batch.targets).pow(2).sum();
  };
  return out;
}

class Told : public ShardProgress {
 public:
  bool Need(Extent /*parameters*/) override { return true; }
  bool Ready(std::size_t from) override {
    first.push_back(from);
    return true;
  }
  std::vector<std::size_t> first;
};

// 12 + 4, 4 + 2, 4 + 1 parameters.
constexpr std::size_t kFloats = 27;

std::vector<float> GradientOf(TorchWorkload& workload, int shard, ShardProgress& progress,
                              double* loss = nullptr) {
  std::vector<float> parameters(kFloats), out(kFloats, 99.0F);
  workload.Start(7, parameters);
  const auto result = workload.Compute(3, shard, parameters, out, progress);
  if (loss != nullptr) *loss = result.loss;
  return out;
}

TEST(TorchWorkloadTest, GradientsAreThoseOfTheLossAndAreToldFromTheLastToTheFirst) {
  auto workload = TorchWorkload::Open(JobOf(false), {});
  ASSERT_TRUE(workload) << Describe(workload.error());
  EXPECT_THAT((*workload)->LayerFloats(), ElementsAre(12, 4, 4, 2, 4, 1));
  Told told;
  double loss = 0;
  const auto gradient = GradientOf(**workload, 0, told, &loss);
  EXPECT_TRUE(std::ranges::is_sorted(told.first, std::greater()));
  EXPECT_GT(told.first.front(), 0U);  // before all is done
  EXPECT_EQ(told.first.back(), 0U);
  for (std::size_t i = 16; i < 22; ++i) EXPECT_EQ(gradient[i], 0);  // of what nothing depends on

  std::vector<float> parameters(kFloats);
  (*workload)->Start(7, parameters);
  for (const std::size_t i : {0U, 14U, 23U, 26U}) {
    const auto loss_at = [&](float move) {
      auto moved = parameters;
      moved[i] += move;
      std::vector<float> ignored(kFloats);
      return (*workload)->Compute(3, 0, moved, ignored, told).loss;
    };
    const double slope = (loss_at(0.01F) - loss_at(-0.01F)) / 0.02 / 10;  // of a batch of 10
    EXPECT_NEAR(gradient[i], slope, 0.02 * std::abs(slope) + 1e-3) << i;
  }
  EXPECT_GT(loss, 0);
}

TEST(TorchWorkloadTest, AShardHasTheSameBitsTwiceAndUnderAScaleOfTheLoss) {
  auto plain = TorchWorkload::Open(JobOf(false), {});
  auto scaled = TorchWorkload::Open(JobOf(false), {.loss_scale = 1024});
  ASSERT_TRUE(plain && scaled);
  Told told;
  const auto first = GradientOf(**plain, 0, told);
  const auto other = GradientOf(**plain, 2, told);
  EXPECT_NE(first, other);
  EXPECT_EQ(GradientOf(**plain, 0, told), first);
  EXPECT_EQ(GradientOf(**scaled, 0, told), first);
}

TEST(TorchWorkloadTest, ShardsThatSeveralThreadsAskForHaveTheBitsOfThoseOfOne) {
  constexpr int kThreads = 4, kTimes = 50;
  auto workload = TorchWorkload::Open(JobOf(false), {});
  ASSERT_TRUE(workload) << Describe(workload.error());
  std::vector<float> parameters(kFloats);
  (*workload)->Start(7, parameters);
  const auto gradient_of = [&](int shard) {
    std::vector<float> out(kFloats, 99.0F);
    Told told;
    (*workload)->Compute(3, shard, parameters, out, told);
    EXPECT_THAT(told.first, ::testing::Contains(0U));
    return out;
  };
  // Shard 1 has no samples.
  std::vector<std::vector<float>> truth;
  for (int shard = 0; shard < kThreads; ++shard) truth.push_back(gradient_of(shard));
  std::vector<int> wrong(kThreads);
  std::vector<std::thread> threads;
  for (int shard = 0; shard < kThreads; ++shard) {
    threads.emplace_back([&, shard, i = static_cast<std::size_t>(shard)] {
      for (int time = 0; time < kTimes; ++time) wrong[i] += gradient_of(shard) != truth[i] ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST(TorchWorkloadTest, AShardWithoutSamplesHasNoGradient) {
  auto workload = TorchWorkload::Open(JobOf(false), {});
  ASSERT_TRUE(workload);
  Told told;
  EXPECT_EQ(GradientOf(**workload, 1, told), std::vector<float>(kFloats));
  EXPECT_EQ(told.first.back(), 0U);
}

TEST(TorchWorkloadTest, SaysWhatItsResultDependsOn) {
  auto job = JobOf(false);
  job.terms = "model net";
  const auto workload = TorchWorkload::Open(
      std::move(job), {.precision = "bfloat16", .loss_scale = 8, .threads = 2, .kernels = "base"});
  ASSERT_TRUE(workload) << Describe(workload.error());
  EXPECT_EQ((*workload)->Describe(),
            "model net; batch 10; optimizer adam; rate constant:rate=0.003; precision bfloat16; "
            "loss-scale 8");
  EXPECT_THAT((*workload)->ComputedWith(),
              AllOf(StartsWith(std::string("torch ") + TORCH_VERSION + "; device cpu; cpu "),
                    Not(HasSubstr("unknown")), EndsWith("; threads 2; kernels base")));
}

TEST(TorchWorkloadTest, SaysWhichSamplesItTakesWhereTheJobDoes) {
  const auto silent = TorchWorkload::Open(JobOf(false), {});
  ASSERT_TRUE(silent);
  EXPECT_EQ((*silent)->EpochSamples(), 0U);
  EXPECT_THAT((*silent)->SamplesOf(0, 0), ElementsAre());

  auto job = JobOf(false);
  job.epoch_samples = 60;
  job.samples = [](std::int64_t step, int shard) {
    const auto first = static_cast<std::uint64_t>(step * 10 + shard * 5) % 60;
    return std::vector<std::uint64_t>{first, first + 1, first + 2, first + 3, first + 4};
  };
  const auto workload = TorchWorkload::Open(job, {});
  ASSERT_TRUE(workload) << Describe(workload.error());
  EXPECT_EQ((*workload)->EpochSamples(), 60U);
  EXPECT_THAT((*workload)->SamplesOf(7, 1), ElementsAre(15, 16, 17, 18, 19));
}

TEST(TorchWorkloadTest, SamplesThatCannotBeThoseOfTheDataAreRefused) {
  auto job = JobOf(false);
  job.epoch_samples = 60;
  job.samples = [](std::int64_t /*step*/, int /*shard*/) {
    return std::vector<std::uint64_t>{0, 1, 2, 3};
  };
  const auto fewer = TorchWorkload::Open(job, {});
  ASSERT_FALSE(fewer);
  EXPECT_THAT(fewer.error().message, HasSubstr("takes 5 samples and names 4"));
  job.samples = [](std::int64_t /*step*/, int /*shard*/) {
    return std::vector<std::uint64_t>{56, 57, 58, 59, 60};
  };
  const auto outside = TorchWorkload::Open(job, {});
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().message, HasSubstr("sample 60 is named in an epoch of 60"));
}

TEST(TorchWorkloadTest, AModuleThatChangesItsBuffersIsRefused) {
  const auto workload = TorchWorkload::Open(JobOf(true), {});
  ASSERT_FALSE(workload);
  EXPECT_THAT(workload.error().message, HasSubstr("norm.running_mean"));
}

}  // namespace
}  // namespace muster::train

// Whole runs: what the parts give together, on real data where it is there.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "train/compute/loss.h"
#include "train/compute/model.h"
#include "train/compute/optimizer.h"
#include "train/compute/rate.h"
#include "train/compute/testing.h"
#include "train/data/dataset.h"
#include "train/data/files.h"
#include "train/data/order.h"
#include "train/data/synthetic.h"

namespace muster::train {
namespace {

struct RunSpec {
  std::string model, optimizer, rate;
  std::size_t batch = 32;
  std::int64_t steps = 100;
};

struct Trained {
  Model model;
  std::vector<float> parameters;
};

Trained Train(const RunSpec& run, const Dataset& data) {
  Model model(*ParseModel(run.model), FastKernels());
  const Optimizer optimizer(FastKernels(), *ParseOptimizer(run.optimizer));
  const RateSpec rate = *ParseRate(run.rate);
  const std::size_t n = model.parameters();
  std::vector<float> parameters(n), gradient(n), first(n), second(n);
  model.Start(1, model.all(), parameters);
  std::uint64_t drawn = 0;
  for (std::int64_t step = 1; step <= run.steps; ++step) {
    std::vector<std::uint64_t> samples(run.batch);
    for (auto& sample : samples) sample = SampleDrawn(1, drawn++, data.size());
    Batch batch = Gather(data, samples);
    Tape tape;
    const Matrix output = model.Forward(model.all(), parameters, std::move(batch.inputs), tape);
    const Loss loss = LossOf(FastKernels(), data.loss(), output, batch.targets, run.batch);
    model.Backward(model.all(), parameters, tape, loss.gradient, gradient);
    const std::size_t states = optimizer.StateFloats();
    const std::size_t a = states > 0 ? n : 0, b = states > 1 ? n : 0;
    optimizer.Update(
        step, RateAt(rate, step),
        {parameters, gradient, {std::span(first).first(a), std::span(second).first(b)}},
        {parameters, {std::span(first).first(a), std::span(second).first(b)}});
  }
  return {std::move(model), std::move(parameters)};
}

// Over the first samples, at most so many.
Loss Judge(const Trained& trained, const Dataset& data, std::size_t most = 1000) {
  std::vector<std::uint64_t> samples(std::min(most, data.size()));
  std::iota(samples.begin(), samples.end(), 0U);
  Batch batch = Gather(data, samples);
  Tape tape;
  const Matrix output =
      trained.model.Forward(trained.model.all(), trained.parameters, std::move(batch.inputs), tape);
  return LossOf(FastKernels(), data.loss(), output, batch.targets, samples.size());
}

double Accuracy(const Loss& loss) {
  return static_cast<double>(loss.correct) / static_cast<double>(loss.count);
}

// Where the package has them, or where examples/train/fetch-digits puts them.
Result<TrainAndTest> Digits() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string file =
      cache != nullptr ? cache : std::string(home == nullptr ? "" : home) + "/.cache";
  file += "/muster/digits.csv.gz";
  return OpenDigits(std::filesystem::exists(file) ? file : kDigitsFile);
}

TEST(LearnTest, HandwrittenDigitsAreTold) {
  const auto data = Digits();
  if (!data) GTEST_SKIP() << Describe(data.error()) << "; or examples/train/fetch-digits";
  const Trained mlp = Train({.model = "mlp:64,128,10",
                             .optimizer = "sgd:momentum=0.9",
                             .rate = "constant:rate=0.1",
                             .steps = 450},
                            *data->train);
  EXPECT_GT(Accuracy(Judge(mlp, *data->test)), 0.95);
  const Trained conv = Train(
      {.model = "conv:digits", .optimizer = "adam", .rate = "constant:rate=0.003", .steps = 225},
      *data->train);
  EXPECT_GT(Accuracy(Judge(conv, *data->test)), 0.96);
}

TEST(LearnTest, PicturesOfClothesAreTold) {
  const auto data = OpenFashion(kFashionFolder);
  if (!data) GTEST_SKIP() << Describe(data.error());
  const Trained conv = Train({.model = "conv:fashion",
                              .optimizer = "adam",
                              .rate = "cosine:rate=0.003,steps=200",
                              .batch = 64,
                              .steps = 200},
                             *data->train);
  EXPECT_GT(Accuracy(Judge(conv, *data->test)), 0.8);
}

// Characters one by one, as often as they occur: what a model knows that looks at nothing.
double UnigramEntropy(const Dataset& data) {
  std::vector<double> counts(data.outputs());
  std::vector<float> input(data.input_cols()), target(data.target_cols());
  for (std::size_t i = 0; i < data.size(); ++i) {
    data.Sample(i, input, target);
    counts[static_cast<std::size_t>(target[0])] += 1;
  }
  double out = 0;
  for (const double count : counts) {
    const double share = count / static_cast<double>(data.size());
    if (share > 0) out -= share * std::log(share);
  }
  return out;
}

TEST(LearnTest, ATransformerLearnsMoreOfATextThanItsLetters) {
  const auto data = OpenText(kTextFile, 32);
  ASSERT_TRUE(data.has_value()) << Describe(data.error());
  const Trained trained =
      Train({.model = "transformer:layers=2,width=32,heads=4,context=32,vocab=96,slices=2",
             .optimizer = "adam",
             .rate = "constant:rate=0.01,warmup=20",
             .batch = 8,
             .steps = 150},
            *data->train);
  const double entropy = UnigramEntropy(*data->train);
  EXPECT_LT(Judge(trained, *data->train, 500).mean(), 0.9 * entropy);
  EXPECT_LT(Judge(trained, *data->test, 500).mean(), entropy);  // its style is another
}

TEST(LearnTest, LinearRegressionReachesItsOptimum) {
  const LinearRegression data(1, 1000, 8);
  const LinearOptimum best = OptimumOf(data);
  const Trained trained = Train({.model = "mlp:8,1",
                                 .optimizer = "sgd",
                                 .rate = "cosine:rate=0.5,steps=500",
                                 .batch = 1000,
                                 .steps = 500},
                                data);
  EXPECT_NEAR(Judge(trained, data).mean(), best.loss, 1e-6);
  for (std::size_t i = 0; i < best.weights.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(trained.parameters[i]), best.weights[i], 1e-4) << i;
  }
}

TEST(LearnTest, AStudentLearnsWhatItsTeacherSays) {
  const auto data = OpenDataset("teacher");
  ASSERT_TRUE(data.has_value());
  const RunSpec run{.model = "mlp:16,64,1,slices=4",
                    .optimizer = "adam",
                    .rate = "cosine:rate=0.01,steps=1500",
                    .batch = 64,
                    .steps = 1500};
  const double before =
      Judge(Train({run.model, run.optimizer, run.rate, 64, 0}, *data->train), *data->test).mean();
  EXPECT_LT(Judge(Train(run, *data->train), *data->test).mean(), 0.02 * before);
}

TEST(LearnTest, AdditionByAModulusIsLearntBeyondThePairsThatWereSeen) {
  const auto data = OpenDataset("modular");
  ASSERT_TRUE(data.has_value());
  const Trained trained = Train({.model = "mlp:58,256,29",
                                 .optimizer = "adam:decay=1",
                                 .rate = "constant:rate=0.02",
                                 .batch = 64,
                                 .steps = 600},
                                *data->train);
  EXPECT_GT(Accuracy(Judge(trained, *data->train)), 0.99);
  EXPECT_GT(Accuracy(Judge(trained, *data->test)), 0.9);
}

}  // namespace
}  // namespace muster::train

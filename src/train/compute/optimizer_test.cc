#include "train/compute/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "train/compute/testing.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

struct Run {
  std::vector<float> parameters, first, second;
  friend bool operator==(const Run&, const Run&) = default;
};

// `parts`: where the parameters are cut; each part is updated by itself.
Run Steps(const OptimizerSpec& spec, int steps, const std::vector<std::size_t>& parts) {
  const Optimizer optimizer(FastKernels(), spec);
  const std::size_t n = parts.back();
  Run now{std::vector<float>(n), std::vector<float>(n), std::vector<float>(n)};
  FillRandom(1, now.parameters);
  for (int step = 1; step <= steps; ++step) {
    std::vector<float> gradient(n);
    FillRandom(static_cast<std::uint64_t>(step) + 10, gradient);
    Run next = now;
    std::size_t from = 0;
    for (const std::size_t to : parts) {
      const auto part = [&](auto& values) { return std::span(values).subspan(from, to - from); };
      optimizer.Update(step, 0.1F,
                       {part(std::as_const(now.parameters)),
                        part(std::as_const(gradient)),
                        {part(std::as_const(now.first)), part(std::as_const(now.second))}},
                       {part(next.parameters), {part(next.first), part(next.second)}});
      from = to;
    }
    now = next;
  }
  return now;
}

TEST(OptimizerTest, PartsGiveTheBitsOfTheWhole) {
  for (const char* text : {"sgd", "sgd:momentum=0.9,decay=0.01", "adam:decay=0.01"}) {
    const auto spec = ParseOptimizer(text);
    ASSERT_TRUE(spec.has_value());
    EXPECT_EQ(Steps(*spec, 5, {97}), Steps(*spec, 5, {1, 8, 35, 36, 60, 97})) << text;
  }
}

TEST(OptimizerTest, StateIsWhatTheRuleNeeds) {
  const auto floats = [](const char* text) {
    return Optimizer(FastKernels(), *ParseOptimizer(text)).StateFloats();
  };
  EXPECT_EQ(floats("sgd"), 0U);
  EXPECT_EQ(floats("sgd:momentum=0.5"), 1U);
  EXPECT_EQ(floats("adam"), 2U);
}

// Two steps with the gradient 1, by hand.
TEST(OptimizerTest, MomentumGathersGradients) {
  const Optimizer optimizer(FastKernels(), *ParseOptimizer("sgd:momentum=0.5"));
  std::vector<float> parameter{1}, velocity{0};
  const std::vector<float> gradient{1};
  optimizer.Update(1, 0.1F, {parameter, gradient, {velocity, {}}}, {parameter, {velocity, {}}});
  EXPECT_THAT(parameter, ElementsAre(FloatNear(0.9F, 1e-6F)));
  optimizer.Update(2, 0.1F, {parameter, gradient, {velocity, {}}}, {parameter, {velocity, {}}});
  EXPECT_THAT(parameter, ElementsAre(FloatNear(0.75F, 1e-6F)));
}

// The first step of Adam has the size of the learning rate, whatever the gradient.
TEST(OptimizerTest, AdamStartsWithFullSteps) {
  const Optimizer optimizer(FastKernels(), *ParseOptimizer("adam"));
  std::vector<float> parameter{1, 1}, first{0, 0}, second{0, 0};
  const std::vector<float> gradient{1e-3F, -1e3F};
  optimizer.Update(1, 0.1F, {parameter, gradient, {first, second}}, {parameter, {first, second}});
  EXPECT_THAT(parameter, ElementsAre(FloatNear(0.9F, 1e-5F), FloatNear(1.1F, 1e-5F)));
}

// A gradient that stays is its own average, and its square that of the square, however the steps
// are put together; so Adam moves by the rate each time.
TEST(OptimizerTest, AveragesOfAdamForgetByBatches) {
  const Optimizer optimizer(FastKernels(), *ParseOptimizer("adam"));
  std::vector<float> parameter{1}, first{0}, second{0};
  const std::vector<float> gradient{0.5F};
  std::vector<float> one{1}, one_first{0}, one_second{0};
  std::int64_t step = 0;
  for (const std::int64_t batches : {1, 3, 15, 7}) {
    const float before = parameter[0];
    for (std::int64_t i = 1; i <= batches; ++i) {
      optimizer.Update(step + i, 0.01F, {one, gradient, {one_first, one_second}},
                       {one, {one_first, one_second}});
    }
    step += batches;
    optimizer.Update(step, 0.01F, {parameter, gradient, {first, second}},
                     {parameter, {first, second}}, batches);
    EXPECT_NEAR(static_cast<double>(before - parameter[0]), 0.01, 1e-5) << batches;
    EXPECT_NEAR(static_cast<double>(first[0]), static_cast<double>(one_first[0]), 1e-5);
    EXPECT_NEAR(static_cast<double>(second[0]), static_cast<double>(one_second[0]), 1e-5);
  }
}

TEST(OptimizerTest, WhatHasNoFiniteGradientStaysWithItsState) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const std::vector<float> gradient{1, kInfinite, -kInfinite, std::nanf(""), -2};
  for (const char* spec : {"sgd", "sgd:momentum=0.9", "adam"}) {
    const Optimizer optimizer(FastKernels(), *ParseOptimizer(spec));
    const std::vector<float> parameters{1, 2, 3, 4, 5}, state{0.1F, 0.2F, 0.3F, 0.4F, 0.5F};
    std::vector<std::vector<float>> planes(2, std::vector<float>(gradient.size(), -1));
    std::vector<float> after(gradient.size());
    UpdateIn in{parameters, gradient};
    UpdateOut out{after};
    for (std::size_t plane = 0; plane < optimizer.StateFloats(); ++plane) {
      in.state[plane] = state;
      out.state[plane] = planes[plane];
    }
    optimizer.Update(1, 0.1F, in, out);
    KeepWhereNotFinite(in, out);
    for (const std::size_t stays : {1U, 2U, 3U}) EXPECT_EQ(after[stays], parameters[stays]) << spec;
    for (const std::size_t moves : {0U, 4U}) EXPECT_NE(after[moves], parameters[moves]) << spec;
    for (std::size_t plane = 0; plane < optimizer.StateFloats(); ++plane) {
      for (const std::size_t stays : {1U, 2U, 3U}) EXPECT_EQ(planes[plane][stays], state[stays]);
      for (const std::size_t moves : {0U, 4U}) EXPECT_NE(planes[plane][moves], state[moves]);
    }
  }
}

TEST(OptimizerTest, MistakesInASpecAreNamed) {
  EXPECT_THAT(Describe(ParseOptimizer("rmsprop").error()), HasSubstr("sgd or adam"));
  EXPECT_THAT(Describe(ParseOptimizer("sgd:beta1=0.9").error()), HasSubstr("momentum, decay"));
  EXPECT_THAT(Describe(ParseOptimizer("adam:beta1=2").error()), HasSubstr("beta1 is '2'"));
  EXPECT_THAT(Describe(ParseOptimizer("adam:decay=1e-2,decay=0").error()), HasSubstr("twice"));
  EXPECT_THAT(Describe(ParseOptimizer("sgd:").error()), HasSubstr("empty"));
}

}  // namespace
}  // namespace muster::train

#include "engine/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::engine {
namespace {

StepSample Sample(const StepModel& truth, int nodes, int gpus, int local) {
  return {nodes, gpus, local, truth.PassSeconds(local), truth.StepSeconds(nodes, gpus, local)};
}

const StepModel kTruth{0.05, 0.002, 0.2, 0.001, 0.03, 0.001, 1.5};

TEST(Goodput, StepsThatWereSeenArePredicted) {
  std::vector<StepSample> samples;
  for (const int local : {16, 32, 64, 128}) {
    for (const auto& [nodes, gpus] : {std::pair{1, 1}, {1, 2}, {1, 4}, {2, 8}, {4, 16}}) {
      samples.push_back(Sample(kTruth, nodes, gpus, local));
    }
  }
  const auto model = FitSteps(samples);
  for (const auto& sample : samples) {
    EXPECT_NEAR(model.StepSeconds(sample.nodes, sample.gpus, sample.local) / sample.step_s, 1, 0.03)
        << sample.nodes << " nodes, " << sample.gpus << " GPUs, " << sample.local;
  }
  // And one between them.
  EXPECT_NEAR(model.StepSeconds(2, 6, 48) / kTruth.StepSeconds(2, 6, 48), 1, 0.05);
}

TEST(Goodput, WhatWasNeverTriedIsAssumedToCostNothing) {
  const auto model = FitSteps({Sample(kTruth, 1, 1, 32), Sample(kTruth, 1, 1, 64)});
  EXPECT_NEAR(model.StepSeconds(4, 16, 64) / model.PassSeconds(64), 1, 1e-3);
}

TEST(Goodput, OneSampleIsEnoughToBegin) {
  const auto model = FitSteps({Sample(kTruth, 1, 1, 32)});
  EXPECT_NEAR(model.StepSeconds(1, 1, 32) / kTruth.StepSeconds(1, 1, 32), 1, 0.01);
}

TEST(Goodput, NoiseDecidesWhetherALargerBatchPays) {
  GoodputModel model;
  model.steps = kTruth;
  model.limits = {32, 4096, 8, 128};
  model.grad_sqr = 1;
  model.grad_var = 0.01;  // hardly any noise: more samples tell nothing new
  const auto quiet = model.Best(2, 8);
  model.grad_var = 1000;
  const auto noisy = model.Best(2, 8);
  EXPECT_GT(noisy.local * (noisy.accumulations + 1), quiet.local * (quiet.accumulations + 1));
  EXPECT_GT(model.Best(4, 16).goodput, noisy.goodput);
}

TEST(Goodput, ABatchStaysWithinItsLimits) {
  GoodputModel model;
  model.steps = kTruth;
  model.limits = {32, 512, 8, 64};
  model.grad_var = 1e6;
  for (int gpus = 1; gpus <= 64; ++gpus) {
    const auto choice = model.Best((gpus + 3) / 4, gpus);
    EXPECT_GE(choice.local, 8) << gpus;
    EXPECT_LE(choice.local, 64) << gpus;
    EXPECT_GE(choice.accumulations, 0) << gpus;
    EXPECT_TRUE(std::isfinite(choice.goodput)) << gpus;
  }
}

TEST(Goodput, EachTypeHasAModelOfItsOwn) {
  StepModel faster = kTruth;
  faster.compute_a /= 3;
  faster.compute_b /= 3;
  std::vector<TypedSample> samples;
  for (const int local : {16, 32, 64}) {
    for (const int gpus : {1, 2, 4}) samples.push_back({"A", Sample(kTruth, 1, gpus, local)});
    samples.push_back({"B", Sample(faster, 1, 1, local)});
  }
  auto models = FitByType(samples);
  ASSERT_EQ(models.size(), 2U);
  EXPECT_NEAR(models["A"].PassSeconds(32) / models["B"].PassSeconds(32), 3, 0.1);
  // Several GPUs were never tried on B: what they cost is taken from A.
  EXPECT_EQ(models["B"].within_a, models["A"].within_a);
  EXPECT_GT(models["B"].within_a, 0.01);
}

TEST(Goodput, ASampleOfNoTypeCountsForEvery) {
  const TypedSample unknown{"", Sample(kTruth, 1, 4, 32)};
  const std::vector<TypedSample> one = {{"A", Sample(kTruth, 1, 1, 32)}, unknown};
  EXPECT_EQ(FitByType(one).at("A"), FitSteps({one[0].step, one[1].step}));
  EXPECT_EQ(FitByType({unknown}).at(""), FitSteps({unknown.step}));
}

TEST(Goodput, WhereAJobNeverRanAnotherTypeStandsForIt) {
  GoodputModel slow;
  slow.steps = kTruth;
  slow.limits = {32, 512, 8, 64};
  const JobSpeed speed(JobSpeed::Models{{"A", slow}}, 4);
  EXPECT_EQ(speed.KnownFor("A"), "A");
  EXPECT_EQ(speed.KnownFor("B"), "A");
  EXPECT_EQ(speed.GoodputOn("B", 1, 4), slow.Best(1, 4).goodput);
}

}  // namespace
}  // namespace muster::engine

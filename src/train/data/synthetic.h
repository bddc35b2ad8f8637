// Made-up data whose answer is known: for tests of convergence, and where no file is at hand.
//
// All numbers come from Philox with the seed, so a sample is a function of its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "train/data/dataset.h"

namespace muster::train {

// A weighted sum of the inputs, a constant, and noise that no model can know.
class LinearRegression : public Dataset {
 public:
  LinearRegression(std::uint64_t seed, std::size_t samples, std::size_t inputs);

  std::string Describe() const override;
  std::size_t size() const override { return samples_; }
  std::size_t input_cols() const override { return weights_.size() - 1; }
  std::size_t target_cols() const override { return 1; }
  std::size_t outputs() const override { return 1; }
  LossKind loss() const override { return LossKind::kSquaredError; }
  void Sample(std::size_t index, std::span<float> input, std::span<float> target) const override;

 private:
  std::uint64_t seed_;
  std::size_t samples_;
  std::vector<float> weights_;  // the last is the constant
};

// The linear model of least squared error on a set with one target: weights, then the constant;
// and that error. By the normal equations.
struct LinearOptimum {
  std::vector<double> weights;
  double loss = 0;
};
LinearOptimum OptimumOf(const Dataset& dataset);

// What a random net of one hidden layer says of random inputs: another such net can learn it.
std::shared_ptr<const Dataset> MakeTeacher(std::uint64_t seed, std::size_t samples,
                                           std::size_t inputs, std::size_t hidden);

// All pairs of numbers below the modulus, each number as a one among zeros; the class is their sum
// by the modulus.
std::shared_ptr<const Dataset> MakeModularAddition(std::size_t modulus);

}  // namespace muster::train

#include "train/data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "train/exact/philox.h"
#include "train/exact/streams.h"

namespace muster::train {

namespace {

enum : std::uint32_t { kInputs, kWeights, kNoise };

// Uniform in [-1, 1).
float Number(std::uint64_t seed, std::size_t row, std::size_t col, std::uint32_t what) {
  const auto numbers =
      Philox(seed, {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(col), what,
                    static_cast<std::uint32_t>(Stream::kSynthetic)});
  return 2.0F * UnitFloat(numbers[0]) - 1.0F;
}

class Teacher : public Dataset {
 public:
  Teacher(std::uint64_t seed, std::size_t samples, std::size_t inputs, std::size_t hidden)
      : seed_(seed), samples_(samples), inputs_(inputs), hidden_(hidden) {
    weights_.reserve(hidden * (inputs + 1));
    for (std::size_t i = 0; i < hidden; ++i) {
      for (std::size_t j = 0; j <= inputs; ++j) weights_.push_back(Number(seed, i, j, kWeights));
    }
  }

  std::string Describe() const override {
    return fmt::format("synthetic: a teacher of {} to {} to 1", inputs_, hidden_);
  }
  std::size_t size() const override { return samples_; }
  std::size_t input_cols() const override { return inputs_; }
  std::size_t target_cols() const override { return 1; }
  std::size_t outputs() const override { return 1; }
  LossKind loss() const override { return LossKind::kSquaredError; }

  void Sample(std::size_t index, std::span<float> input, std::span<float> target) const override {
    for (std::size_t j = 0; j < inputs_; ++j) input[j] = Number(seed_, index, j, kInputs);
    float sum = 0;
    const float* weights = weights_.data();
    for (std::size_t i = 0; i < hidden_; ++i, weights += inputs_ + 1) {
      float unit = 0;
      for (std::size_t j = 0; j < inputs_; ++j) unit += weights[j] * input[j];
      sum += weights[inputs_] * std::max(unit, 0.0F);
    }
    target[0] = sum;
  }

 private:
  std::uint64_t seed_;
  std::size_t samples_, inputs_, hidden_;
  std::vector<float> weights_;  // of each hidden unit: those of its inputs, then its own
};

class ModularAddition : public Dataset {
 public:
  explicit ModularAddition(std::size_t modulus) : modulus_(modulus) {}

  std::string Describe() const override {
    return fmt::format("synthetic: addition modulo {}", modulus_);
  }
  std::size_t size() const override { return modulus_ * modulus_; }
  std::size_t input_cols() const override { return 2 * modulus_; }
  std::size_t target_cols() const override { return 1; }
  std::size_t outputs() const override { return modulus_; }
  LossKind loss() const override { return LossKind::kCrossEntropy; }

  void Sample(std::size_t index, std::span<float> input, std::span<float> target) const override {
    std::ranges::fill(input, 0.0F);
    input[index / modulus_] = 1;
    input[modulus_ + index % modulus_] = 1;
    target[0] = static_cast<float>((index / modulus_ + index % modulus_) % modulus_);
  }

 private:
  std::size_t modulus_;
};

// a * x = b, with a symmetric and positive; by rows, in place.
void SolveInPlace(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    MUSTER_CHECK(a[k * n + k] > 0, "the inputs are independent of each other");
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (std::size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] -= a[i * n + j] * b[j];
    b[i] /= a[i * n + i];
  }
}

}  // namespace

LinearRegression::LinearRegression(std::uint64_t seed, std::size_t samples, std::size_t inputs)
    : seed_(seed), samples_(samples) {
  weights_.reserve(inputs + 1);
  for (std::size_t j = 0; j <= inputs; ++j) weights_.push_back(Number(seed, 0, j, kWeights));
}

std::string LinearRegression::Describe() const {
  return fmt::format("synthetic: linear regression of {} inputs", input_cols());
}

void LinearRegression::Sample(std::size_t index, std::span<float> input,
                              std::span<float> target) const {
  constexpr float kNoiseSize = 0.1F;
  float sum = weights_.back() + kNoiseSize * Number(seed_, index, 0, kNoise);
  for (std::size_t j = 0; j < input.size(); ++j) {
    input[j] = Number(seed_, index, j, kInputs);
    sum += weights_[j] * input[j];
  }
  target[0] = sum;
}

LinearOptimum OptimumOf(const Dataset& dataset) {
  const std::size_t n = dataset.input_cols() + 1;
  std::vector<double> a(n * n);
  LinearOptimum out{std::vector<double>(n), 0};
  std::vector<float> input(n), target(1);
  const auto read = [&](std::size_t index) {
    dataset.Sample(index, std::span(input).first(n - 1), target);
    input[n - 1] = 1;
  };
  for (std::size_t index = 0; index < dataset.size(); ++index) {
    read(index);
    for (std::size_t i = 0; i < n; ++i) {
      const auto x = static_cast<double>(input[i]);
      for (std::size_t j = 0; j < n; ++j) a[i * n + j] += x * static_cast<double>(input[j]);
      out.weights[i] += x * static_cast<double>(target[0]);
    }
  }
  SolveInPlace(a, out.weights);
  for (std::size_t index = 0; index < dataset.size(); ++index) {
    read(index);
    double distance = -static_cast<double>(target[0]);
    for (std::size_t i = 0; i < n; ++i) distance += out.weights[i] * static_cast<double>(input[i]);
    out.loss += distance * distance / static_cast<double>(dataset.size());
  }
  return out;
}

std::shared_ptr<const Dataset> MakeTeacher(std::uint64_t seed, std::size_t samples,
                                           std::size_t inputs, std::size_t hidden) {
  return std::make_shared<Teacher>(seed, samples, inputs, hidden);
}

std::shared_ptr<const Dataset> MakeModularAddition(std::size_t modulus) {
  return std::make_shared<ModularAddition>(modulus);
}

}  // namespace muster::train

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "train/compute/layers.h"
#include "train/compute/products.h"
#include "train/compute/start.h"

namespace muster::train {

namespace {

std::string_view NameOf(Activation activation) {
  return activation == Activation::kRelu ? "relu" : "gelu";
}

void Apply(const Kernels& kernels, Activation activation, const Matrix& x, Matrix& y) {
  const auto function = activation == Activation::kRelu ? kernels.relu : kernels.gelu;
  function(x.size(), x.data(), y.data());
}

// dy becomes dx.
void ApplyBack(const Kernels& kernels, Activation activation, const Matrix& x, Matrix& dy) {
  const auto function = activation == Activation::kRelu ? kernels.relu_back : kernels.gelu_back;
  function(x.size(), x.data(), dy.data(), dy.data());
}

class Dense : public Layer {
 public:
  Dense(const Kernels& kernels, std::size_t inputs, std::size_t outputs)
      : kernels_(kernels), inputs_(inputs), outputs_(outputs) {}

  std::string Describe() const override { return fmt::format("dense {} to {}", inputs_, outputs_); }
  std::size_t parameters() const override { return (inputs_ + 1) * outputs_; }
  Shape OutputShape(Shape input) const override { return {input.rows, outputs_}; }

  void Start(std::uint64_t seed, int layer, int slice, std::span<float> parameters) const override {
    StartUniform({seed, layer, slice}, 0, LimitFor(inputs_, 1), parameters.first(weights()));
    std::ranges::fill(parameters.subspan(weights()), 0.0F);
  }

  Matrix Forward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                 Saved& /*saved*/) const override {
    Matrix out(OutputShape(input.shape()));
    Multiply(kernels_, input, parameters.first(weights()), out);
    kernels_.add_bias(out.rows(), out.cols(), parameters.data() + weights(), out.data());
    return out;
  }

  Matrix Backward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                  const Saved& /*saved*/, const Matrix& output_gradient,
                  std::span<float> gradient) const override {
    MultiplyForWeights(kernels_, input, output_gradient, gradient.first(weights()));
    kernels_.sum_rows(output_gradient.rows(), outputs_, output_gradient.data(),
                      gradient.data() + weights());
    Matrix out(input.shape());
    MultiplyBack(kernels_, output_gradient, parameters.first(weights()), out);
    return out;
  }

 private:
  std::size_t weights() const { return inputs_ * outputs_; }

  const Kernels& kernels_;
  std::size_t inputs_, outputs_;
};

class ActivationLayer : public Layer {
 public:
  ActivationLayer(const Kernels& kernels, Activation activation)
      : kernels_(kernels), activation_(activation) {}

  std::string Describe() const override { return std::string(NameOf(activation_)); }
  Shape OutputShape(Shape input) const override { return input; }

  Matrix Forward(std::span<const float> /*parameters*/, int /*slice*/, const Matrix& input,
                 Saved& /*saved*/) const override {
    Matrix out(input.shape());
    Apply(kernels_, activation_, input, out);
    return out;
  }

  Matrix Backward(std::span<const float> /*parameters*/, int /*slice*/, const Matrix& input,
                  const Saved& /*saved*/, const Matrix& output_gradient,
                  std::span<float> /*gradient*/) const override {
    Matrix out(input.shape());
    std::ranges::copy(output_gradient.values(), out.values().begin());
    ApplyBack(kernels_, activation_, input, out);
    return out;
  }

 private:
  const Kernels& kernels_;
  Activation activation_;
};

// Parameters of a slice: W1 (inputs x units), b1 (units), W2 (units x outputs).
class Mlp : public Layer {
 public:
  Mlp(const Kernels& kernels, const MlpShape& shape)
      : kernels_(kernels),
        shape_(shape),
        units_(shape.hidden / static_cast<std::size_t>(shape.slices)) {
    MUSTER_CHECK(units_ * static_cast<std::size_t>(shape.slices) == shape.hidden,
                 "the slices divide the hidden units");
    const std::size_t kept = shape.residual ? shape.inputs : shape.outputs;
    MUSTER_CHECK(kept == shape.outputs, "a residual layer keeps its width");
  }

  std::string Describe() const override {
    return fmt::format("{}mlp {} to {} to {}, {}", shape_.residual ? "residual " : "",
                       shape_.inputs, shape_.hidden, shape_.outputs, NameOf(shape_.activation));
  }
  int slices() const override { return shape_.slices; }
  std::size_t parameters() const override { return into() + units_ + out_of(); }
  Shape OutputShape(Shape input) const override { return {input.rows, shape_.outputs}; }

  void Start(std::uint64_t seed, int layer, int slice, std::span<float> parameters) const override {
    const SliceKey key{seed, layer, slice};
    StartUniform(key, 0, LimitFor(shape_.inputs, 2), parameters.first(into()));
    std::ranges::fill(parameters.subspan(into(), units_), 0.0F);
    StartUniform(key, into() + units_, LimitFor(shape_.hidden, 1),
                 parameters.subspan(into() + units_));
  }

  // Saved: the hidden units before and after the activation, and with `residual` what Normalise
  // gives.
  Matrix Forward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                 Saved& saved) const override {
    Saved normal;
    if (shape_.residual) normal = Normalised(kernels_, input);
    Matrix before(input.rows(), units_);
    Multiply(kernels_, shape_.residual ? normal[0] : input, parameters.first(into()), before);
    kernels_.add_bias(before.rows(), units_, parameters.data() + into(), before.data());
    Matrix after(before.shape());
    Apply(kernels_, shape_.activation, before, after);
    Matrix out(OutputShape(input.shape()));
    Multiply(kernels_, after, parameters.subspan(into() + units_), out);
    saved.reserve(4);
    saved.push_back(std::move(before));
    saved.push_back(std::move(after));
    std::ranges::move(normal, std::back_inserter(saved));
    return out;
  }

  Matrix Backward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                  const Saved& saved, const Matrix& output_gradient,
                  std::span<float> gradient) const override {
    const Matrix& before = saved[0];
    const Matrix& seen = shape_.residual ? saved[2] : input;
    MultiplyForWeights(kernels_, saved[1], output_gradient, gradient.subspan(into() + units_));
    Matrix hidden(before.shape());
    MultiplyBack(kernels_, output_gradient, parameters.subspan(into() + units_), hidden);
    ApplyBack(kernels_, shape_.activation, before, hidden);
    kernels_.sum_rows(hidden.rows(), units_, hidden.data(), gradient.data() + into());
    MultiplyForWeights(kernels_, seen, hidden, gradient.first(into()));
    Matrix out(input.shape());
    MultiplyBack(kernels_, hidden, parameters.first(into()), out);
    if (shape_.residual) NormalisedBack(kernels_, saved[2], saved[3], out);
    return out;
  }

  void Finish(const Matrix& input, Matrix& sum) const override {
    if (shape_.residual) Add(input, sum);
  }
  void FinishBackward(const Matrix& output_gradient, Matrix& input_gradient) const override {
    if (shape_.residual) Add(output_gradient, input_gradient);
  }

 private:
  std::size_t into() const { return shape_.inputs * units_; }
  std::size_t out_of() const { return units_ * shape_.outputs; }

  const Kernels& kernels_;
  MlpShape shape_;
  std::size_t units_;  // of a slice
};

}  // namespace

std::unique_ptr<Layer> MakeDense(const Kernels& kernels, std::size_t inputs, std::size_t outputs) {
  return std::make_unique<Dense>(kernels, inputs, outputs);
}

std::unique_ptr<Layer> MakeActivation(const Kernels& kernels, Activation activation) {
  return std::make_unique<ActivationLayer>(kernels, activation);
}

std::unique_ptr<Layer> MakeMlp(const Kernels& kernels, const MlpShape& shape) {
  return std::make_unique<Mlp>(kernels, shape);
}

}  // namespace muster::train

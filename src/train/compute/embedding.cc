#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "train/compute/layers.h"
#include "train/compute/start.h"

namespace muster::train {

namespace {

// Parameters: a row for each token, then a row for each position; a row of the output is the sum
// of both.
class Embedding : public Layer {
 public:
  Embedding(std::size_t vocabulary, std::size_t context, std::size_t width)
      : vocabulary_(vocabulary), context_(context), width_(width) {}

  std::string Describe() const override {
    return fmt::format("embedding of {} tokens at {} positions to {}", vocabulary_, context_,
                       width_);
  }
  std::size_t parameters() const override { return (vocabulary_ + context_) * width_; }
  Shape OutputShape(Shape input) const override { return {input.rows * input.cols, width_}; }
  std::uint64_t Cost(Shape input) const override { return input.rows * input.cols * width_; }

  void Start(std::uint64_t seed, int layer, int slice, std::span<float> parameters) const override {
    constexpr float kLimit = 0.5F;
    StartUniform({seed, layer, slice}, 0, kLimit, parameters);
  }

  Matrix Forward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                 Saved& /*saved*/) const override {
    MUSTER_CHECK(input.cols() == context_, "a layer is handed what fits its parameters");
    Matrix out(OutputShape(input.shape()));
    for (std::size_t i = 0; i < input.size(); ++i) {
      const float* token = parameters.data() + Token(input.values()[i]) * width_;
      const float* position = parameters.data() + (vocabulary_ + i % context_) * width_;
      float* to = out.row(i).data();
      for (std::size_t j = 0; j < width_; ++j) to[j] = token[j] + position[j];
    }
    return out;
  }

  // The gradient of token numbers means nothing: zero.
  Matrix Backward(std::span<const float> /*parameters*/, int /*slice*/, const Matrix& input,
                  const Saved& /*saved*/, const Matrix& output_gradient,
                  std::span<float> gradient) const override {
    std::ranges::fill(gradient, 0.0F);
    for (std::size_t i = 0; i < input.size(); ++i) {
      float* token = gradient.data() + Token(input.values()[i]) * width_;
      float* position = gradient.data() + (vocabulary_ + i % context_) * width_;
      const float* from = output_gradient.row(i).data();
      for (std::size_t j = 0; j < width_; ++j) {
        token[j] += from[j];
        position[j] += from[j];
      }
    }
    return Matrix(input.shape());
  }

 private:
  std::size_t Token(float value) const {
    const auto out = static_cast<std::size_t>(value);
    MUSTER_CHECK(out < vocabulary_, "a token is one of the vocabulary");
    return out;
  }

  std::size_t vocabulary_, context_, width_;
};

}  // namespace

std::unique_ptr<Layer> MakeEmbedding(std::size_t vocabulary, std::size_t context,
                                     std::size_t width) {
  return std::make_unique<Embedding>(vocabulary, context, width);
}

}  // namespace muster::train

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "train/compute/layers.h"
#include "train/compute/products.h"
#include "train/compute/start.h"

namespace muster::train {

namespace {

// Parameters of a slice, with n the numbers of its heads: W (width x 3n: queries, keys, values of
// all its heads), then V (n x width).
class Attention : public Layer {
 public:
  Attention(const Kernels& kernels, const AttentionShape& shape)
      : kernels_(kernels),
        shape_(shape),
        heads_(shape.heads / static_cast<std::size_t>(shape.slices)),
        each_(shape.width / shape.heads),
        scale_(1.0F / std::sqrt(static_cast<float>(each_))) {
    MUSTER_CHECK(heads_ * static_cast<std::size_t>(shape.slices) == shape.heads,
                 "the slices divide the heads");
    MUSTER_CHECK(each_ * shape.heads == shape.width, "the heads divide the width");
  }

  std::string Describe() const override {
    return fmt::format("residual attention of width {} with {} heads over {} tokens", shape_.width,
                       shape_.heads, shape_.context);
  }
  int slices() const override { return shape_.slices; }
  std::size_t parameters() const override { return into() + out_of(); }
  Shape OutputShape(Shape input) const override { return input; }
  std::uint64_t Cost(Shape input) const override {
    return Layer::Cost(input) + 2 * input.rows * shape_.context * shape_.width;
  }

  void Start(std::uint64_t seed, int layer, int slice, std::span<float> parameters) const override {
    const SliceKey key{seed, layer, slice};
    StartUniform(key, 0, LimitFor(shape_.width, 1), parameters.first(into()));
    StartUniform(key, into(), LimitFor(shape_.width, 1), parameters.subspan(into()));
  }

  // Saved: the input normalised and 1 / its deviation; queries, keys and values; what each token
  // looks at, for each sample and head; what the heads give.
  Matrix Forward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                 Saved& saved) const override {
    MUSTER_CHECK(input.rows() % shape_.context == 0, "a sample has all its tokens");
    const std::size_t samples = input.rows() / shape_.context;
    saved = Normalised(kernels_, input);
    saved.reserve(5);
    Matrix qkv(input.rows(), 3 * numbers());
    Multiply(kernels_, saved[0], parameters.first(into()), qkv);
    Matrix looks(samples * heads_ * shape_.context, shape_.context);
    Matrix given(input.rows(), numbers());
    for (std::size_t i = 0; i < samples * heads_; ++i) HeadForward(i, qkv, looks, given);
    Matrix out(input.shape());
    Multiply(kernels_, given, parameters.subspan(into()), out);
    saved.push_back(std::move(qkv));
    saved.push_back(std::move(looks));
    saved.push_back(std::move(given));
    return out;
  }

  Matrix Backward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                  const Saved& saved, const Matrix& output_gradient,
                  std::span<float> gradient) const override {
    const Matrix& qkv = saved[2];
    const Matrix& looks = saved[3];
    const Matrix& given = saved[4];
    MultiplyForWeights(kernels_, given, output_gradient, gradient.subspan(into()));
    Matrix given_back(given.shape());
    MultiplyBack(kernels_, output_gradient, parameters.subspan(into()), given_back);
    Matrix qkv_back(qkv.shape());
    Matrix scores(shape_.context, shape_.context);
    const std::size_t samples = input.rows() / shape_.context;
    for (std::size_t i = 0; i < samples * heads_; ++i) {
      HeadBackward(i, qkv, looks, given_back, scores, qkv_back);
    }
    MultiplyForWeights(kernels_, saved[0], qkv_back, gradient.first(into()));
    Matrix out(input.shape());
    MultiplyBack(kernels_, qkv_back, parameters.first(into()), out);
    NormalisedBack(kernels_, saved[0], saved[1], out);
    return out;
  }

  void Finish(const Matrix& input, Matrix& sum) const override { Add(input, sum); }
  void FinishBackward(const Matrix& output_gradient, Matrix& input_gradient) const override {
    Add(output_gradient, input_gradient);
  }

 private:
  std::size_t numbers() const { return heads_ * each_; }
  std::size_t into() const { return shape_.width * 3 * numbers(); }
  std::size_t out_of() const { return numbers() * shape_.width; }

  // Where the head of a sample begins; `index` counts samples, then heads.
  std::size_t In(std::size_t index, const Matrix& matrix, std::size_t part) const {
    return index / heads_ * shape_.context * matrix.cols() + part * numbers() +
           index % heads_ * each_;
  }
  std::size_t Looks(std::size_t index) const { return index * shape_.context * shape_.context; }

  void HeadForward(std::size_t index, const Matrix& qkv, Matrix& looks, Matrix& given) const {
    const std::size_t tokens = shape_.context;
    float* look = looks.data() + Looks(index);
    kernels_.multiply({.rows = tokens,
                       .depth = each_,
                       .cols = tokens,
                       .a = qkv.data() + In(index, qkv, 0),
                       .a_stride = qkv.cols(),
                       .b = qkv.data() + In(index, qkv, 1),
                       .b_stride = qkv.cols(),
                       .b_transposed = true,
                       .to = look,
                       .to_stride = tokens});
    for (std::size_t i = 0; i < tokens; ++i) {
      kernels_.softmax(i + 1, tokens, scale_, look + i * tokens);
    }
    kernels_.multiply({.rows = tokens,
                       .depth = tokens,
                       .cols = each_,
                       .a = look,
                       .a_stride = tokens,
                       .b = qkv.data() + In(index, qkv, 2),
                       .b_stride = qkv.cols(),
                       .to = given.data() + In(index, given, 0),
                       .to_stride = given.cols()});
  }

  void HeadBackward(std::size_t index, const Matrix& qkv, const Matrix& looks,
                    const Matrix& given_back, Matrix& scores, Matrix& qkv_back) const {
    const std::size_t tokens = shape_.context;
    const float* look = looks.data() + Looks(index);
    const float* dy = given_back.data() + In(index, given_back, 0);
    Product product{.rows = tokens,
                    .depth = each_,
                    .cols = tokens,
                    .a = dy,
                    .a_stride = given_back.cols(),
                    .b = qkv.data() + In(index, qkv, 2),
                    .b_stride = qkv.cols(),
                    .b_transposed = true,
                    .to = scores.data(),
                    .to_stride = tokens};
    kernels_.multiply(product);
    for (std::size_t i = 0; i < tokens; ++i) {
      kernels_.softmax_back(i + 1, tokens, scale_, look + i * tokens, scores.row(i).data());
    }
    // From here on a square of tokens times a part of qkv or of dy gives a part of qkv_back.
    product = {.rows = tokens,
               .depth = tokens,
               .cols = each_,
               .a = scores.data(),
               .a_stride = tokens,
               .b = qkv.data() + In(index, qkv, 1),
               .b_stride = qkv.cols(),
               .to = qkv_back.data() + In(index, qkv_back, 0),
               .to_stride = qkv_back.cols()};
    kernels_.multiply(product);
    product.a_transposed = true;
    product.b = qkv.data() + In(index, qkv, 0);
    product.to = qkv_back.data() + In(index, qkv_back, 1);
    kernels_.multiply(product);
    product.a = look;
    product.b = dy;
    product.b_stride = given_back.cols();
    product.to = qkv_back.data() + In(index, qkv_back, 2);
    kernels_.multiply(product);
  }

  const Kernels& kernels_;
  AttentionShape shape_;
  std::size_t heads_;  // of a slice
  std::size_t each_;   // numbers of a head
  float scale_;
};

}  // namespace

std::unique_ptr<Layer> MakeAttention(const Kernels& kernels, const AttentionShape& shape) {
  return std::make_unique<Attention>(kernels, shape);
}

}  // namespace muster::train

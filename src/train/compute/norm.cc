#include <fmt/format.h>

#include <algorithm>

#include "train/compute/layers.h"
#include "train/compute/products.h"

namespace muster::train {

namespace {

// Parameters: gain, then bias, for each column.
class Norm : public Layer {
 public:
  Norm(const Kernels& kernels, std::size_t cols) : kernels_(kernels), cols_(cols) {}

  std::string Describe() const override { return fmt::format("layer norm of {}", cols_); }
  std::size_t parameters() const override { return 2 * cols_; }
  Shape OutputShape(Shape input) const override { return input; }

  void Start(std::uint64_t /*seed*/, int /*layer*/, int /*slice*/,
             std::span<float> parameters) const override {
    std::ranges::fill(parameters.first(cols_), 1.0F);
    std::ranges::fill(parameters.subspan(cols_), 0.0F);
  }

  Matrix Forward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                 Saved& saved) const override {
    saved = Normalised(kernels_, input);
    Matrix out(input.shape());
    const float* gain = parameters.data();
    const float* bias = gain + cols_;
    for (std::size_t i = 0; i < input.rows(); ++i) {
      const float* normal = saved[0].row(i).data();
      float* to = out.row(i).data();
      for (std::size_t j = 0; j < cols_; ++j) to[j] = normal[j] * gain[j] + bias[j];
    }
    return out;
  }

  Matrix Backward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                  const Saved& saved, const Matrix& output_gradient,
                  std::span<float> gradient) const override {
    Matrix out(input.shape());
    std::ranges::fill(gradient, 0.0F);
    for (std::size_t i = 0; i < input.rows(); ++i) {
      const float* normal = saved[0].row(i).data();
      const float* dy = output_gradient.row(i).data();
      float* dx = out.row(i).data();
      for (std::size_t j = 0; j < cols_; ++j) {
        gradient[j] += dy[j] * normal[j];
        gradient[cols_ + j] += dy[j];
        dx[j] = dy[j] * parameters[j];
      }
    }
    NormalisedBack(kernels_, saved[0], saved[1], out);
    return out;
  }

 private:
  const Kernels& kernels_;
  std::size_t cols_;
};

}  // namespace

std::unique_ptr<Layer> MakeNorm(const Kernels& kernels, std::size_t cols) {
  return std::make_unique<Norm>(kernels, cols);
}

}  // namespace muster::train

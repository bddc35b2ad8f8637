#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "train/compute/layers.h"
#include "train/compute/start.h"

namespace muster::train {

namespace {

// As one product: each point of the output has a row with the patch of the input that it sees.
// Parameters: W (kernel x kernel x channels, outputs), then a bias for each output.
class Conv : public Layer {
 public:
  Conv(const Kernels& kernels, const ConvShape& shape) : kernels_(kernels), shape_(shape) {}

  std::string Describe() const override {
    return fmt::format("convolution {0}x{0} of {1}x{2}x{3} to {4}x{5}x{6}", shape_.kernel,
                       shape_.height, shape_.width, shape_.channels, shape_.OutHeight(),
                       shape_.OutWidth(), shape_.outputs);
  }
  std::size_t parameters() const override { return weights() + shape_.outputs; }
  Shape OutputShape(Shape input) const override { return {input.rows, points() * shape_.outputs}; }
  std::uint64_t Cost(Shape input) const override { return input.rows * points() * parameters(); }

  void Start(std::uint64_t seed, int layer, int slice, std::span<float> parameters) const override {
    StartUniform({seed, layer, slice}, 0, LimitFor(patch(), 2), parameters.first(weights()));
    std::ranges::fill(parameters.subspan(weights()), 0.0F);
  }

  Matrix Forward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                 Saved& saved) const override {
    MUSTER_CHECK(input.cols() == shape_.height * shape_.width * shape_.channels,
                 "a layer is handed what fits its parameters");
    const Matrix& patches = saved.emplace_back(Patches(input));
    Matrix out(OutputShape(input.shape()));
    kernels_.multiply({.rows = patches.rows(),
                       .depth = patch(),
                       .cols = shape_.outputs,
                       .a = patches.data(),
                       .a_stride = patch(),
                       .b = parameters.data(),
                       .b_stride = shape_.outputs,
                       .to = out.data(),
                       .to_stride = shape_.outputs,
                       .add = true});
    kernels_.add_bias(patches.rows(), shape_.outputs, parameters.data() + weights(), out.data());
    return out;
  }

  Matrix Backward(std::span<const float> parameters, int /*slice*/, const Matrix& input,
                  const Saved& saved, const Matrix& output_gradient,
                  std::span<float> gradient) const override {
    const Matrix& patches = saved[0];
    kernels_.multiply({.rows = patch(),
                       .depth = patches.rows(),
                       .cols = shape_.outputs,
                       .a = patches.data(),
                       .a_stride = patch(),
                       .a_transposed = true,
                       .b = output_gradient.data(),
                       .b_stride = shape_.outputs,
                       .to = gradient.data(),
                       .to_stride = shape_.outputs});
    kernels_.sum_rows(patches.rows(), shape_.outputs, output_gradient.data(),
                      gradient.data() + weights());
    Matrix back(patches.shape());
    kernels_.multiply({.rows = patches.rows(),
                       .depth = shape_.outputs,
                       .cols = patch(),
                       .a = output_gradient.data(),
                       .a_stride = shape_.outputs,
                       .b = parameters.data(),
                       .b_stride = shape_.outputs,
                       .b_transposed = true,
                       .to = back.data(),
                       .to_stride = patch(),
                       .add = true});
    Matrix out(input.shape());
    AddPatches(back, out);
    return out;
  }

 private:
  std::size_t patch() const { return shape_.kernel * shape_.kernel * shape_.channels; }
  std::size_t points() const { return shape_.OutHeight() * shape_.OutWidth(); }
  std::size_t weights() const { return patch() * shape_.outputs; }

  // Calls visit(offset in an image, offset in the patches of an image) for each point that a patch
  // sees, `channels` numbers each. What lies in the padding is left out.
  template <typename Visit>
  void EachPoint(const Visit& visit) const {
    const std::size_t row = shape_.kernel * shape_.channels;
    for (std::size_t point = 0; point < points(); ++point) {
      const std::size_t top = point / shape_.OutWidth() * shape_.stride;
      const std::size_t left = point % shape_.OutWidth() * shape_.stride;
      for (std::size_t i = 0; i < shape_.kernel; ++i) {
        const std::size_t y = top + i - shape_.padding;  // above the image: a huge number
        if (y >= shape_.height) continue;
        for (std::size_t j = 0; j < shape_.kernel; ++j) {
          const std::size_t x = left + j - shape_.padding;
          if (x >= shape_.width) continue;
          visit((y * shape_.width + x) * shape_.channels,
                point * patch() + i * row + j * shape_.channels);
        }
      }
    }
  }

  Matrix Patches(const Matrix& input) const {
    Matrix out(input.rows() * points(), patch());
    for (std::size_t sample = 0; sample < input.rows(); ++sample) {
      const float* from = input.row(sample).data();
      float* to = out.data() + sample * points() * patch();
      EachPoint([&](std::size_t image, std::size_t patches) {
        std::copy_n(from + image, shape_.channels, to + patches);
      });
    }
    return out;
  }

  void AddPatches(const Matrix& patches, Matrix& to) const {
    for (std::size_t sample = 0; sample < to.rows(); ++sample) {
      const float* from = patches.data() + sample * points() * patch();
      float* image_of = to.row(sample).data();
      EachPoint([&](std::size_t image, std::size_t patch_at) {
        for (std::size_t c = 0; c < shape_.channels; ++c) {
          image_of[image + c] += from[patch_at + c];
        }
      });
    }
  }

  const Kernels& kernels_;
  ConvShape shape_;
};

}  // namespace

std::unique_ptr<Layer> MakeConv(const Kernels& kernels, const ConvShape& shape) {
  return std::make_unique<Conv>(kernels, shape);
}

}  // namespace muster::train

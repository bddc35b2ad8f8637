#include "train/compute/products.h"

#include <utility>

#include "base/check.h"

namespace muster::train {

namespace {

void CheckShapes(const Matrix& input, std::size_t weights, const Matrix& output) {
  MUSTER_CHECK(input.rows() == output.rows(), "a layer keeps the number of rows");
  MUSTER_CHECK(weights == input.cols() * output.cols(),
               "a layer is handed what fits its parameters");
}

}  // namespace

void Multiply(const Kernels& kernels, const Matrix& input, std::span<const float> weights,
              Matrix& out) {
  CheckShapes(input, weights.size(), out);
  kernels.multiply({.rows = input.rows(),
                    .depth = input.cols(),
                    .cols = out.cols(),
                    .a = input.data(),
                    .a_stride = input.cols(),
                    .b = weights.data(),
                    .b_stride = out.cols(),
                    .to = out.data(),
                    .to_stride = out.cols(),
                    .add = true});
}

void MultiplyBack(const Kernels& kernels, const Matrix& gradient, std::span<const float> weights,
                  Matrix& input_gradient) {
  CheckShapes(input_gradient, weights.size(), gradient);
  kernels.multiply({.rows = gradient.rows(),
                    .depth = gradient.cols(),
                    .cols = input_gradient.cols(),
                    .a = gradient.data(),
                    .a_stride = gradient.cols(),
                    .b = weights.data(),
                    .b_stride = gradient.cols(),
                    .b_transposed = true,
                    .to = input_gradient.data(),
                    .to_stride = input_gradient.cols(),
                    .add = true});
}

void MultiplyForWeights(const Kernels& kernels, const Matrix& input, const Matrix& gradient,
                        std::span<float> weights_gradient) {
  CheckShapes(input, weights_gradient.size(), gradient);
  kernels.multiply({.rows = input.cols(),
                    .depth = input.rows(),
                    .cols = gradient.cols(),
                    .a = input.data(),
                    .a_stride = input.cols(),
                    .a_transposed = true,
                    .b = gradient.data(),
                    .b_stride = gradient.cols(),
                    .to = weights_gradient.data(),
                    .to_stride = gradient.cols()});
}

Saved Normalised(const Kernels& kernels, const Matrix& input) {
  Saved out;
  out.reserve(2);
  out.emplace_back(input.shape());
  out.emplace_back(input.rows(), 1);
  kernels.normalise(input.rows(), input.cols(), input.data(), out[0].data(), out[1].data());
  return out;
}

void NormalisedBack(const Kernels& kernels, const Matrix& normal, const Matrix& inverse,
                    Matrix& gradient) {
  kernels.normalise_back(normal.rows(), normal.cols(), normal.data(), inverse.data(),
                         gradient.data(), gradient.data());
}

}  // namespace muster::train

// Products: what most layers do with kernels, on matrices and their parameters.
//
// Weights are inputs x outputs, by rows. Every function checks that the shapes fit, because a
// kernel does not.
#pragma once

#include <span>

#include "train/compute/kernels.h"
#include "train/compute/layer.h"

namespace muster::train {

// out, which is zero, becomes input * weights.
void Multiply(const Kernels& kernels, const Matrix& input, std::span<const float> weights,
              Matrix& out);
// The gradient of the input, which is zero, becomes gradient * weights transposed.
void MultiplyBack(const Kernels& kernels, const Matrix& gradient, std::span<const float> weights,
                  Matrix& input_gradient);
// The gradient of the weights: input transposed * gradient.
void MultiplyForWeights(const Kernels& kernels, const Matrix& input, const Matrix& gradient,
                        std::span<float> weights_gradient);

// The rows with mean 0 and variance 1, and a column with 1 / deviation.
Saved Normalised(const Kernels& kernels, const Matrix& input);
// The gradient of what was normalised, in place.
void NormalisedBack(const Kernels& kernels, const Matrix& normal, const Matrix& inverse,
                    Matrix& gradient);

}  // namespace muster::train

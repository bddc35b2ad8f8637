// The layers there are, each made by a function.
//
// What is cut into slices is a pair of matrices with something in between: hidden units of an MLP,
// heads of an attention. Such a pair has no bias after the second matrix, because a bias must be
// added once and not by every slice; and the normalisation before it has no gain of its own, which
// the first matrix has anyway. The kernels must outlive the layer.
#pragma once

#include <cstddef>
#include <memory>

#include "train/compute/kernels.h"
#include "train/compute/layer.h"

namespace muster::train {

enum class Activation { kRelu, kGelu };

// input * W + b.
std::unique_ptr<Layer> MakeDense(const Kernels& kernels, std::size_t inputs, std::size_t outputs);

std::unique_ptr<Layer> MakeActivation(const Kernels& kernels, Activation activation);

// activation(input * W1 + b1) * W2; the hidden units are cut into slices, which divide them.
struct MlpShape {
  std::size_t inputs = 0, hidden = 0, outputs = 0;
  Activation activation = Activation::kRelu;
  int slices = 1;
  bool residual = false;  // input + mlp(normalise(input)); outputs as many as inputs
};
std::unique_ptr<Layer> MakeMlp(const Kernels& kernels, const MlpShape& shape);

// A sample is a row of height x width x channels numbers, the channels of a point side by side.
struct ConvShape {
  std::size_t height = 0, width = 0, channels = 0;
  std::size_t outputs = 0;  // channels
  std::size_t kernel = 3;   // points each way
  std::size_t stride = 1;
  std::size_t padding = 1;  // zeros around the image

  std::size_t OutHeight() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::size_t OutWidth() const { return (width + 2 * padding - kernel) / stride + 1; }
};
std::unique_ptr<Layer> MakeConv(const Kernels& kernels, const ConvShape& shape);

// A row of token numbers for each sample becomes a row for each token.
std::unique_ptr<Layer> MakeEmbedding(std::size_t vocabulary, std::size_t context,
                                     std::size_t width);

// input + attention(normalise(input)); a token sees itself and those before it in its sample. The
// heads are cut into slices, which divide them.
struct AttentionShape {
  std::size_t context = 0;  // tokens, and so rows, of a sample
  std::size_t width = 0;
  std::size_t heads = 1;  // divide the width
  int slices = 1;
};
std::unique_ptr<Layer> MakeAttention(const Kernels& kernels, const AttentionShape& shape);

// Rows to mean 0 and variance 1, then gain and bias for each column.
std::unique_ptr<Layer> MakeNorm(const Kernels& kernels, std::size_t cols);

}  // namespace muster::train

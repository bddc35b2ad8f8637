// train_layers: what the built-in compute gives for made-up numbers, as one JSON object, for
// torch_layers_test.py to compare.
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "train/compute/layers.h"
#include "train/compute/loss.h"
#include "train/compute/model.h"
#include "train/compute/optimizer.h"
#include "train/compute/testing.h"

namespace muster::train {
namespace {

nlohmann::json JsonOf(const Matrix& matrix) {
  return {{"rows", matrix.rows()}, {"cols", matrix.cols()}, {"values", Floats(matrix.values())}};
}

// Token numbers below `most`.
Matrix Tokens(std::uint64_t seed, std::size_t rows, std::size_t cols, int most) {
  Matrix out = RandomMatrix(seed, rows, cols);
  for (float& value : out.values()) {
    value = static_cast<float>(static_cast<int>((value + 1) / 2 * static_cast<float>(most)));
  }
  return out;
}

nlohmann::json Try(const Layer& layer, const Matrix& input) {
  std::vector<float> parameters(layer.parameters() * static_cast<std::size_t>(layer.slices()));
  FillRandom(1, parameters);
  for (float& value : parameters) value *= 0.5F;
  std::vector<Saved> saved;
  const Matrix output = ForwardAll(layer, parameters, input, saved);
  const Matrix given = RandomMatrix(2, output.rows(), output.cols());
  std::vector<float> gradient(parameters.size());
  const Matrix back = BackwardAll(layer, parameters, input, saved, given, gradient);
  return {{"parameters", parameters}, {"input", JsonOf(input)},
          {"output", JsonOf(output)}, {"output_gradient", JsonOf(given)},
          {"gradient", gradient},     {"input_gradient", JsonOf(back)}};
}

nlohmann::json Layers(const Kernels& kernels) {
  nlohmann::json out;
  out["dense"] = Try(*MakeDense(kernels, 7, 5), RandomMatrix(3, 6, 7));
  out["relu"] = Try(*MakeActivation(kernels, Activation::kRelu), RandomMatrix(3, 6, 7));
  out["gelu"] = Try(*MakeActivation(kernels, Activation::kGelu), RandomMatrix(3, 6, 7));
  out["mlp"] =
      Try(*MakeMlp(kernels, {7, 8, 5, Activation::kRelu, 2, false}), RandomMatrix(3, 6, 7));
  out["residual_mlp"] =
      Try(*MakeMlp(kernels, {6, 8, 6, Activation::kGelu, 2, true}), RandomMatrix(3, 5, 6));
  out["norm"] = Try(*MakeNorm(kernels, 9), RandomMatrix(3, 4, 9));
  out["conv"] =
      Try(*MakeConv(kernels, {.height = 6, .width = 5, .channels = 3, .outputs = 4, .stride = 2}),
          RandomMatrix(3, 2, 90));
  out["attention"] =
      Try(*MakeAttention(kernels, {.context = 5, .width = 12, .heads = 4, .slices = 2}),
          RandomMatrix(3, 10, 12));
  out["embedding"] = Try(*MakeEmbedding(6, 4, 3), Tokens(3, 2, 4, 6));
  return out;
}

nlohmann::json Losses(const Kernels& kernels) {
  nlohmann::json out;
  const auto put = [&](const char* name, LossKind kind, const Matrix& output,
                       const Matrix& targets) {
    const Loss loss = LossOf(kernels, kind, output, targets, targets.rows());
    out[name] = {{"output", JsonOf(output)},
                 {"targets", JsonOf(targets)},
                 {"mean", loss.mean()},
                 {"gradient", JsonOf(loss.gradient)}};
  };
  put("cross_entropy", LossKind::kCrossEntropy, RandomMatrix(4, 6, 5), Tokens(5, 3, 2, 5));
  put("squared_error", LossKind::kSquaredError, RandomMatrix(4, 6, 5), RandomMatrix(5, 6, 5));
  return out;
}

nlohmann::json Optimizers(const Kernels& kernels) {
  constexpr int kSteps = 6;
  constexpr std::size_t kSize = 20;
  nlohmann::json out;
  for (const char* text : {"sgd:decay=0.1", "sgd:momentum=0.9,decay=0.1", "adam:decay=0.1"}) {
    const Optimizer optimizer(kernels, *ParseOptimizer(text));
    std::vector<float> parameters(kSize), gradient(kSize), first(kSize), second(kSize);
    FillRandom(1, parameters);
    const auto start = parameters;
    const std::size_t a = optimizer.StateFloats() > 0 ? kSize : 0;
    const std::size_t b = optimizer.StateFloats() > 1 ? kSize : 0;
    std::vector<std::vector<float>> gradients;
    for (int step = 1; step <= kSteps; ++step) {
      FillRandom(static_cast<std::uint64_t>(step) + 1, gradient);
      gradients.push_back(gradient);
      optimizer.Update(
          step, 0.05F,
          {parameters, gradient, {std::span(first).first(a), std::span(second).first(b)}},
          {parameters, {std::span(first).first(a), std::span(second).first(b)}});
    }
    out[text] = {{"start", start}, {"gradients", gradients}, {"end", parameters}};
  }
  return out;
}

}  // namespace
}  // namespace muster::train

int main() {
  using namespace muster::train;  // NOLINT(google-build-using-namespace): one short function
  const Kernels& kernels = FastKernels();
  const nlohmann::json out = {{"kernels", kernels.name},
                              {"layers", Layers(kernels)},
                              {"losses", Losses(kernels)},
                              {"optimizers", Optimizers(kernels)}};
  std::puts(out.dump().c_str());
}

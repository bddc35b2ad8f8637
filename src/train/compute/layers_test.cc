#include "train/compute/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "train/compute/testing.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> Started(const Layer& layer, std::uint64_t seed = 3) {
  const std::size_t each = layer.parameters();
  std::vector<float> out(each * static_cast<std::size_t>(layer.slices()));
  for (int slice = 0; slice < layer.slices(); ++slice) {
    layer.Start(seed, 5, slice,
                std::span(out).subspan(static_cast<std::size_t>(slice) * each, each));
  }
  return out;
}

// The scalar whose gradient is looked at: outputs, each with a weight of its own.
double Weighted(const Matrix& output, const Matrix& weights) {
  double out = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    out += static_cast<double>(output.values()[i]) * static_cast<double>(weights.values()[i]);
  }
  return out;
}

// The slope along each of the values, by going a little both ways.
std::vector<float> Slopes(std::span<float> values, const std::function<double()>& loss) {
  constexpr float kStep = 1e-2F;
  std::vector<float> out;
  out.reserve(values.size());
  for (float& value : values) {
    const float at = value;
    value = at + kStep;
    const double above = loss();
    value = at - kStep;
    const double below = loss();
    value = at;
    out.push_back(static_cast<float>((above - below) / (2.0 * static_cast<double>(kStep))));
  }
  return out;
}

// `inputs_move`: whether the input is made of numbers that may be a little larger or smaller.
void ExpectGradients(const Layer& layer, Matrix input, bool inputs_move = true) {
  SCOPED_TRACE(layer.Describe());
  std::vector<float> parameters = Started(layer);
  for (std::size_t i = 0; i < parameters.size(); ++i) {  // also those that start as zero
    parameters[i] += 0.1F * std::sin(static_cast<float>(i));
  }
  std::vector<Saved> saved;
  const Matrix output = ForwardAll(layer, parameters, input, saved);
  ASSERT_EQ(output.shape(), layer.OutputShape(input.shape()));
  const Matrix weights = RandomMatrix(17, output.rows(), output.cols());
  std::vector<float> gradient(parameters.size(), NAN);
  const Matrix back = BackwardAll(layer, parameters, input, saved, weights, gradient);
  const auto loss = [&] {
    std::vector<Saved> unused;
    return Weighted(ForwardAll(layer, parameters, input, unused), weights);
  };
  constexpr float kNear = 3e-3F;
  EXPECT_THAT(gradient, Pointwise(FloatNear(kNear), Slopes(parameters, loss)));
  if (!inputs_move) return;
  EXPECT_THAT(Floats(back.values()), Pointwise(FloatNear(kNear), Slopes(input.values(), loss)));
}

TEST(LayersTest, GradientsAreThoseOfSmallSteps) {
  const Kernels& kernels = FastKernels();
  ExpectGradients(*MakeDense(kernels, 7, 5), RandomMatrix(1, 4, 7));
  ExpectGradients(*MakeActivation(kernels, Activation::kGelu), RandomMatrix(2, 3, 9));
  ExpectGradients(*MakeMlp(kernels, {7, 12, 5, Activation::kGelu, 3, false}),
                  RandomMatrix(3, 4, 7));
  ExpectGradients(*MakeMlp(kernels, {6, 8, 6, Activation::kGelu, 2, true}), RandomMatrix(4, 4, 6));
  ExpectGradients(*MakeNorm(kernels, 6), RandomMatrix(5, 4, 6));
  ExpectGradients(*MakeConv(kernels, {.height = 5, .width = 4, .channels = 2, .outputs = 3}),
                  RandomMatrix(6, 2, 40));
  ExpectGradients(*MakeConv(kernels, {.height = 7,
                                      .width = 6,
                                      .channels = 1,
                                      .outputs = 2,
                                      .kernel = 4,
                                      .stride = 2,
                                      .padding = 0}),
                  RandomMatrix(7, 2, 42));
  ExpectGradients(*MakeAttention(kernels, {.context = 5, .width = 12, .heads = 4, .slices = 2}),
                  RandomMatrix(8, 10, 12));
  Matrix tokens(2, 3);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens.values()[i] = static_cast<float>(i * i % 5);
  }
  ExpectGradients(*MakeEmbedding(5, 3, 4), std::move(tokens), false);
}

TEST(LayersTest, ReluLetsThroughWhatIsAboveZero) {
  const auto layer = MakeActivation(FastKernels(), Activation::kRelu);
  Matrix input(1, 3), gradient(1, 3);
  input.values()[0] = -1;
  input.values()[2] = 2;
  gradient.values()[0] = gradient.values()[1] = gradient.values()[2] = 5;
  Saved saved;
  EXPECT_THAT(layer->Forward({}, 0, input, saved).values(), ElementsAre(0, 0, 2));
  EXPECT_THAT(layer->Backward({}, 0, input, saved, gradient, {}).values(), ElementsAre(0, 0, 5));
}

// A layer in one piece, and the same parameters handed out to slices. `columns` of a matrix go with
// the units of a slice, or rows.
struct Part {
  std::size_t rows, cols;
  bool by_columns;
  std::size_t groups = 1;  // of columns, each cut by itself: queries, keys, values
};

std::vector<float> HandOut(const std::vector<float>& whole, const std::vector<Part>& parts,
                           std::size_t slices) {
  std::vector<float> out;
  out.reserve(whole.size());
  for (std::size_t slice = 0; slice < slices; ++slice) {
    std::size_t from = 0;
    for (const auto& part : parts) {
      const std::size_t group = part.cols / part.groups;
      for (std::size_t i = 0; i < part.rows * part.cols; ++i) {
        const std::size_t of =
            part.by_columns ? i % group / (group / slices) : i / part.cols / (part.rows / slices);
        if (of == slice) out.push_back(whole[from + i]);
      }
      from += part.rows * part.cols;
    }
  }
  return out;
}

void ExpectSlicesGiveTheSum(const std::function<std::unique_ptr<Layer>(int slices)>& make,
                            const std::vector<Part>& parts, const Matrix& input) {
  const auto whole = make(1);
  SCOPED_TRACE(whole->Describe());
  const std::vector<float> parameters = Started(*whole);
  std::vector<float> gradient(parameters.size());
  std::vector<Saved> saved;
  const Matrix output = ForwardAll(*whole, parameters, input, saved);
  const Matrix weights = RandomMatrix(17, output.rows(), output.cols());
  const Matrix back = BackwardAll(*whole, parameters, input, saved, weights, gradient);
  constexpr float kNear = 2e-5F;
  for (const int slices : {2, 4}) {
    const auto cut = make(slices);
    const auto count = static_cast<std::size_t>(slices);
    std::vector<float> cut_gradient(parameters.size());
    const std::vector<float> handed = HandOut(parameters, parts, count);
    EXPECT_THAT(Floats(ForwardAll(*cut, handed, input, saved).values()),
                Pointwise(FloatNear(kNear), output.values()));
    EXPECT_THAT(Floats(BackwardAll(*cut, handed, input, saved, weights, cut_gradient).values()),
                Pointwise(FloatNear(kNear), back.values()));
    EXPECT_THAT(cut_gradient, Pointwise(FloatNear(kNear), HandOut(gradient, parts, count)));
  }
}

TEST(LayersTest, SlicesGiveTheSumOfTheirParts) {
  const Kernels& kernels = FastKernels();
  for (const bool residual : {false, true}) {
    ExpectSlicesGiveTheSum(
        [&](int slices) {
          return MakeMlp(kernels, {6, 16, 6, Activation::kRelu, slices, residual});
        },
        {{6, 16, true}, {1, 16, true}, {16, 6, false}}, RandomMatrix(1, 5, 6));
  }
  ExpectSlicesGiveTheSum(
      [&](int slices) {
        return MakeAttention(kernels, {.context = 3, .width = 8, .heads = 4, .slices = slices});
      },
      {{8, 24, true, 3}, {8, 8, false}}, RandomMatrix(2, 6, 8));
}

TEST(LayersTest, ATokenSeesNoneAfterIt) {
  const auto layer =
      MakeAttention(FastKernels(), {.context = 6, .width = 8, .heads = 2, .slices = 1});
  const auto parameters = Started(*layer);
  Matrix input = RandomMatrix(4, 6, 8);
  std::vector<Saved> saved;
  const Matrix before = ForwardAll(*layer, parameters, input, saved);
  for (float& value : input.row(4)) value = -value;
  const Matrix after = ForwardAll(*layer, parameters, input, saved);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(Floats(before.row(i)), Floats(after.row(i))) << i;
  for (std::size_t i = 4; i < 6; ++i) EXPECT_NE(Floats(before.row(i)), Floats(after.row(i))) << i;
}

TEST(LayersTest, EachSliceStartsWithNumbersOfItsOwn) {
  const auto layer = MakeMlp(FastKernels(), {4, 8, 4, Activation::kRelu, 2, false});
  std::vector<float> first(layer->parameters()), second(first), other(first), seed(first);
  layer->Start(1, 0, 0, first);
  layer->Start(1, 0, 1, second);
  layer->Start(1, 1, 0, other);
  layer->Start(2, 0, 0, seed);
  EXPECT_NE(first, second);
  EXPECT_NE(first, other);
  EXPECT_NE(first, seed);
}

}  // namespace
}  // namespace muster::train

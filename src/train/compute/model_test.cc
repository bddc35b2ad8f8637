#include "train/compute/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "train/compute/loss.h"
#include "train/compute/testing.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kModels[] = {
    "mlp:64,32,10", "mlp:64,32,16,8,10,slices=4", "conv:digits",
    "transformer:layers=2,width=16,heads=4,context=8,vocab=20,slices=2"};

// A few samples of what the model takes.
Matrix InputFor(const Model& model, const ModelSpec& spec) {
  Matrix out = RandomMatrix(9, 6, model.input_cols());
  if (spec.kind == ModelKind::kTransformer) {
    for (float& value : out.values()) {
      value = static_cast<float>(static_cast<int>((value + 1) * 9.9F));
    }
  }
  return out;
}

struct Pass {
  std::vector<float> output, gradient, input_gradient;
  friend bool operator==(const Pass&, const Pass&) = default;
};

// Forward and back, with the model cut into stages: each has parameters in memory of its own, which
// begins `shift` floats after a multiple of 64 bytes.
Pass PassOf(const std::string& text, const std::vector<int>& cuts, std::size_t shift = 0) {
  const auto spec = ParseModel(text);
  const Model model(*spec, FastKernels());
  std::vector<LayerRange> stages;
  int first = 0;
  for (const int cut : cuts) stages.push_back({std::exchange(first, cut), cut});
  stages.push_back({first, model.layers()});

  std::vector<Tape> tapes(stages.size());
  std::vector<Matrix> parameters, gradients;
  Matrix at = InputFor(model, *spec);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::size_t size = model.Offset(stages[i].last) - model.Offset(stages[i].first);
    parameters.emplace_back(1, size + shift);
    gradients.emplace_back(1, size + shift);
    model.Start(1, stages[i], parameters[i].values().subspan(shift));
    at = model.Forward(stages[i], parameters[i].values().subspan(shift), std::move(at), tapes[i]);
  }
  Pass out{.output = Floats(at.values()), .gradient = {}, .input_gradient = {}};
  Matrix back = RandomMatrix(11, at.rows(), at.cols());
  for (std::size_t i = stages.size(); i-- > 0;) {
    back = model.Backward(stages[i], parameters[i].values().subspan(shift), tapes[i], back,
                          gradients[i].values().subspan(shift));
  }
  for (const auto& gradient : gradients) {
    const auto values = gradient.values().subspan(shift);
    out.gradient.insert(out.gradient.end(), values.begin(), values.end());
  }
  out.input_gradient = Floats(back.values());
  return out;
}

TEST(ModelTest, CutsBetweenLayersKeepTheBits) {
  for (const char* text : kModels) {
    const Model model(*ParseModel(text), FastKernels());
    const Pass whole = PassOf(text, {});
    ASSERT_EQ(whole.gradient.size(), model.parameters());
    std::vector<int> everywhere(static_cast<std::size_t>(model.layers() - 1));
    std::iota(everywhere.begin(), everywhere.end(), 1);
    EXPECT_TRUE(PassOf(text, everywhere) == whole) << text;
    for (const int cut : everywhere)
      EXPECT_TRUE(PassOf(text, {cut}) == whole) << text << " " << cut;
  }
}

TEST(ModelTest, WhereParametersLieDoesNotChangeTheBits) {
  for (const char* text : kModels) {
    const Pass aligned = PassOf(text, {});
    for (const std::size_t shift : {1U, 3U, 4U, 8U, 13U}) {
      EXPECT_TRUE(PassOf(text, {}, shift) == aligned) << text << " " << shift;
    }
  }
}

// A step may have fewer samples than shards.
TEST(ModelTest, AShardWithoutSamplesHasNoGradient) {
  for (const char* text : kModels) {
    const Model model(*ParseModel(text), FastKernels());
    std::vector<float> parameters(model.parameters()), gradient(model.parameters(), 1);
    model.Start(1, model.all(), parameters);
    Tape tape;
    const Matrix output =
        model.Forward(model.all(), parameters, Matrix(0, model.input_cols()), tape);
    model.Backward(model.all(), parameters, tape, output, gradient);
    EXPECT_EQ(gradient, std::vector<float>(model.parameters())) << text;
  }
}

TEST(ModelTest, BackwardTellsWhichLayersAreDone) {
  const Model model(*ParseModel("mlp:4,3,2"), FastKernels());
  std::vector<float> parameters(model.parameters()), gradient(model.parameters());
  model.Start(1, model.all(), parameters);
  Tape tape;
  const Matrix output = model.Forward(model.all(), parameters, RandomMatrix(1, 2, 4), tape);
  std::vector<int> done;
  model.Backward(model.all(), parameters, tape, output, gradient,
                 [&](int layer) { done.push_back(layer); });
  EXPECT_THAT(done, ElementsAre(2, 1, 0));
}

TEST(ModelTest, MistakesInASpecAreNamed) {
  const auto error = [](const char* text) { return Describe(ParseModel(text).error()); };
  EXPECT_THAT(error("resnet"), HasSubstr("mlp:64,128,10"));
  EXPECT_THAT(error("mlp:64"), HasSubstr("at least two sizes"));
  EXPECT_THAT(error("mlp:64,0,10"), HasSubstr("no setting '0'"));
  EXPECT_THAT(error("mlp:64,30,10,slices=4"), HasSubstr("4 slices do not divide 30 hidden units"));
  EXPECT_THAT(error("conv:faces"), HasSubstr("conv:digits"));
  EXPECT_THAT(error("transformer:layers=2,width=16,heads=3,context=8,vocab=9"),
              HasSubstr("3 heads do not divide a width of 16"));
  EXPECT_THAT(error("transformer:layers=2,width=16,heads=4,context=8,vocab=9,slices=8"),
              HasSubstr("8 slices do not divide 4 heads"));
  EXPECT_THAT(error("transformer:layers=2,width=16,heads=4,vocab=9"),
              HasSubstr("context is missing"));
  EXPECT_THAT(error("transformer:layers=two"), HasSubstr("layers is 'two'"));
}

}  // namespace
}  // namespace muster::train

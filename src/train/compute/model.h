// Model: a list of layers, and where the parameters of each lie in one flat array.
//
// A spec is a short text: "mlp:64,128,10", "conv:digits",
// "transformer:layers=4,width=64,heads=4,context=64,vocab=96". Parameters lie layer after layer,
// and in a layer slice after slice, so a stage of a pipeline is one run of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/compute/kernels.h"
#include "train/compute/layer.h"

namespace muster::train {

// Layers [first, last) of a model.
struct LayerRange {
  int first = 0;
  int last = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

// What a pass forward through some layers keeps for the pass back: for each layer its input and
// what its slices saved.
struct Tape {
  std::vector<Matrix> inputs;
  std::vector<std::vector<Saved>> saved;
};

enum class ModelKind { kMlp, kConv, kTransformer };

struct ModelSpec {
  ModelKind kind = ModelKind::kMlp;
  std::string text = {};                // as written
  std::vector<std::size_t> sizes = {};  // kMlp: inputs, hidden units, ..., outputs
  std::size_t image = 0;                // kConv: height and width
  std::size_t layers = 0, width = 0, heads = 0, context = 0, vocabulary = 0;  // kTransformer
  int slices = 1;                                                             // kMlp, kTransformer
};

// mlp:I,H,...,O[,slices=N]: dense layers with relu between them; with slices, each pair of dense
//   layers is one layer that is cut into N.
// conv:digits, conv:fashion: two convolutions and two dense layers, for images of 8 x 8 or 28 x 28.
// transformer:layers=L,width=W,heads=H,context=C,vocab=V[,slices=N]: a decoder; each layer is an
//   attention and an mlp of 4 W hidden units, both cut into N slices.
Result<ModelSpec> ParseModel(std::string_view text);

class Model {
 public:
  // The kernels must outlive the model.
  Model(const ModelSpec& spec, const Kernels& kernels);

  int layers() const { return static_cast<int>(layers_.size()); }
  const Layer& layer(int index) const { return *layers_[static_cast<std::size_t>(index)]; }
  LayerRange all() const { return {0, layers()}; }

  std::size_t input_cols() const { return input_cols_; }
  std::size_t outputs() const { return outputs_; }  // columns: classes, or numbers

  // Floats: of all layers before this one, so Offset(layers()) is that of the whole model.
  std::size_t Offset(int layer) const { return offsets_[static_cast<std::size_t>(layer)]; }
  std::size_t parameters() const { return offsets_.back(); }

  // Of the layers in the range, from the first on: `parameters` and `gradient` hold theirs alone.
  void Start(std::uint64_t seed, LayerRange range, std::span<float> parameters) const;
  Matrix Forward(LayerRange range, std::span<const float> parameters, Matrix input,
                 Tape& tape) const;
  // `done`, where given, is called with each layer whose part of `gradient` is there, the last
  // layer first.
  Matrix Backward(LayerRange range, std::span<const float> parameters, const Tape& tape,
                  const Matrix& output_gradient, std::span<float> gradient,
                  const std::function<void(int layer)>& done = {}) const;

 private:
  void Append(std::unique_ptr<Layer> layer);
  void AppendMlp(const ModelSpec& spec, const Kernels& kernels);
  void AppendConv(const ModelSpec& spec, const Kernels& kernels);
  void AppendTransformer(const ModelSpec& spec, const Kernels& kernels);
  std::size_t Size(int layer) const { return Offset(layer + 1) - Offset(layer); }

  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::size_t> offsets_{0};
  std::size_t input_cols_ = 0;
  std::size_t outputs_ = 0;
};

}  // namespace muster::train

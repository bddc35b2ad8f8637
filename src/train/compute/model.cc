#include "train/compute/model.h"

#include <utility>

#include "base/check.h"
#include "train/compute/layers.h"

namespace muster::train {

Model::Model(const ModelSpec& spec, const Kernels& kernels) {
  switch (spec.kind) {
    case ModelKind::kMlp:
      AppendMlp(spec, kernels);
      break;
    case ModelKind::kConv:
      AppendConv(spec, kernels);
      break;
    case ModelKind::kTransformer:
      AppendTransformer(spec, kernels);
      break;
  }
}

void Model::Append(std::unique_ptr<Layer> layer) {
  offsets_.push_back(offsets_.back() +
                     layer->parameters() * static_cast<std::size_t>(layer->slices()));
  layers_.push_back(std::move(layer));
}

void Model::AppendMlp(const ModelSpec& spec, const Kernels& kernels) {
  const auto& sizes = spec.sizes;
  input_cols_ = sizes.front();
  outputs_ = sizes.back();
  std::size_t at = 0;
  while (at + 1 < sizes.size()) {
    if (at > 0) Append(MakeActivation(kernels, Activation::kRelu));
    if (spec.slices > 1 && at + 2 < sizes.size()) {
      Append(MakeMlp(kernels, {.inputs = sizes[at],
                               .hidden = sizes[at + 1],
                               .outputs = sizes[at + 2],
                               .slices = spec.slices}));
      at += 2;
    } else {
      Append(MakeDense(kernels, sizes[at], sizes[at + 1]));
      at += 1;
    }
  }
}

void Model::AppendConv(const ModelSpec& spec, const Kernels& kernels) {
  constexpr std::size_t kClasses = 10;
  const ConvShape first{.height = spec.image,
                        .width = spec.image,
                        .channels = 1,
                        .outputs = 16,
                        .stride = spec.image > 8 ? std::size_t{2} : std::size_t{1}};
  const ConvShape second{.height = first.OutHeight(),
                         .width = first.OutWidth(),
                         .channels = first.outputs,
                         .outputs = 32,
                         .stride = 2};
  const std::size_t flat = second.OutHeight() * second.OutWidth() * second.outputs;
  input_cols_ = spec.image * spec.image;
  outputs_ = kClasses;
  Append(MakeConv(kernels, first));
  Append(MakeActivation(kernels, Activation::kRelu));
  Append(MakeConv(kernels, second));
  Append(MakeActivation(kernels, Activation::kRelu));
  Append(MakeDense(kernels, flat, 64));
  Append(MakeActivation(kernels, Activation::kRelu));
  Append(MakeDense(kernels, 64, kClasses));
}

void Model::AppendTransformer(const ModelSpec& spec, const Kernels& kernels) {
  input_cols_ = spec.context;
  outputs_ = spec.vocabulary;
  Append(MakeEmbedding(spec.vocabulary, spec.context, spec.width));
  for (std::size_t i = 0; i < spec.layers; ++i) {
    Append(MakeAttention(kernels, {.context = spec.context,
                                   .width = spec.width,
                                   .heads = spec.heads,
                                   .slices = spec.slices}));
    Append(MakeMlp(kernels, {.inputs = spec.width,
                             .hidden = 4 * spec.width,
                             .outputs = spec.width,
                             .activation = Activation::kGelu,
                             .slices = spec.slices,
                             .residual = true}));
  }
  Append(MakeNorm(kernels, spec.width));
  Append(MakeDense(kernels, spec.width, spec.vocabulary));
}

void Model::Start(std::uint64_t seed, LayerRange range, std::span<float> parameters) const {
  MUSTER_CHECK(parameters.size() == Offset(range.last) - Offset(range.first),
               "parameters are those of the layers");
  for (int index = range.first; index < range.last; ++index) {
    const std::size_t each = layer(index).parameters();
    for (int slice = 0; slice < layer(index).slices(); ++slice) {
      layer(index).Start(seed, index, slice, parameters.first(each));
      parameters = parameters.subspan(each);
    }
  }
}

Matrix Model::Forward(LayerRange range, std::span<const float> parameters, Matrix input,
                      Tape& tape) const {
  tape.inputs.clear();
  tape.inputs.reserve(static_cast<std::size_t>(range.last - range.first));
  tape.saved.resize(tape.inputs.capacity());
  for (int index = range.first; index < range.last; ++index) {
    const auto at = static_cast<std::size_t>(index - range.first);
    Matrix output = ForwardAll(layer(index), parameters.first(Size(index)), input, tape.saved[at]);
    tape.inputs.push_back(std::exchange(input, std::move(output)));
    parameters = parameters.subspan(Size(index));
  }
  return input;
}

Matrix Model::Backward(LayerRange range, std::span<const float> parameters, const Tape& tape,
                       const Matrix& output_gradient, std::span<float> gradient,
                       const std::function<void(int layer)>& done) const {
  Matrix back;
  for (int index = range.last - 1; index >= range.first; --index) {
    const auto at = static_cast<std::size_t>(index - range.first);
    const std::size_t from = Offset(index) - Offset(range.first);
    back = BackwardAll(layer(index), parameters.subspan(from, Size(index)), tape.inputs[at],
                       tape.saved[at], index == range.last - 1 ? output_gradient : back,
                       gradient.subspan(from, Size(index)));
    if (done) done(index);
  }
  return back;
}

}  // namespace muster::train

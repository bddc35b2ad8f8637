#include "train/compute/layer.h"

#include <utility>

#include "base/check.h"
#include "train/exact/shard_tree.h"

namespace muster::train {

namespace {

Matrix SumNode(std::vector<Matrix>& summands, ShardRange node) {
  if (node.size() == 1) return std::move(summands[static_cast<std::size_t>(node.first)]);
  const int split = SplitOf(node);
  Matrix left = SumNode(summands, {node.first, split});
  Add(SumNode(summands, {split, node.last}), left);
  return left;
}

}  // namespace

// Every row meets every parameter.
std::uint64_t Layer::Cost(Shape input) const {
  const Shape output = OutputShape(input);
  return input.rows * parameters() * static_cast<std::size_t>(slices()) + output.rows * output.cols;
}

void Layer::Start(std::uint64_t /*seed*/, int /*layer*/, int /*slice*/,
                  std::span<float> parameters) const {
  MUSTER_CHECK(parameters.empty(), "a layer with parameters says how they start");
}

void Layer::Finish(const Matrix& /*input*/, Matrix& /*sum*/) const {}
void Layer::FinishBackward(const Matrix& /*output_gradient*/, Matrix& /*input_gradient*/) const {}

void Add(const Matrix& values, Matrix& into) {
  MUSTER_CHECK(values.shape() == into.shape(), "summands have the same shape");
  const float* from = values.data();
  float* to = into.data();
  for (std::size_t i = 0; i < into.size(); ++i) to[i] += from[i];
}

Matrix SumSlices(std::vector<Matrix> summands) {
  MUSTER_CHECK(!summands.empty(), "a layer has at least one slice");
  return SumNode(summands, {0, static_cast<int>(summands.size())});
}

Matrix ForwardAll(const Layer& layer, std::span<const float> parameters, const Matrix& input,
                  std::vector<Saved>& saved) {
  const std::size_t each = layer.parameters();
  const auto slices = static_cast<std::size_t>(layer.slices());
  saved.clear();
  saved.resize(slices);
  std::vector<Matrix> summands;
  summands.reserve(slices);
  for (std::size_t slice = 0; slice < slices; ++slice) {
    summands.push_back(layer.Forward(parameters.subspan(slice * each, each),
                                     static_cast<int>(slice), input, saved[slice]));
  }
  Matrix sum = SumSlices(std::move(summands));
  layer.Finish(input, sum);
  return sum;
}

Matrix BackwardAll(const Layer& layer, std::span<const float> parameters, const Matrix& input,
                   const std::vector<Saved>& saved, const Matrix& output_gradient,
                   std::span<float> gradient) {
  const std::size_t each = layer.parameters();
  const auto slices = static_cast<std::size_t>(layer.slices());
  std::vector<Matrix> summands;
  summands.reserve(slices);
  for (std::size_t slice = 0; slice < slices; ++slice) {
    summands.push_back(layer.Backward(parameters.subspan(slice * each, each),
                                      static_cast<int>(slice), input, saved[slice], output_gradient,
                                      gradient.subspan(slice * each, each)));
  }
  Matrix sum = SumSlices(std::move(summands));
  layer.FinishBackward(output_gradient, sum);
  return sum;
}

}  // namespace muster::train

#include "train/run/model_column.h"

#include <algorithm>
#include <utility>

#include "train/run/model_workload.h"
#include "train/run/stage_cut.h"

namespace muster::train {

ModelColumn::ModelColumn(const ModelWorkload& workload, const Cut& cut)
    : workload_(workload), cut_(cut) {
  range_ = CutByCost(LayerCosts(workload.model()), cut.stages)[static_cast<std::size_t>(cut.stage)];
  const auto layers = static_cast<std::size_t>(range_.last - range_.first);
  for (std::size_t i = 0; i < layers; ++i) {
    const auto slices = static_cast<std::size_t>(CutInside(i) ? 1 : At(i).slices());
    offsets_.push_back(offsets_.back() + At(i).parameters() * slices);
  }
}

const Layer& ModelColumn::At(std::size_t index) const {
  return workload_.model().layer(range_.first + static_cast<int>(index));
}

bool ModelColumn::CutInside(std::size_t index) const {
  return cut_.slices > 1 && At(index).slices() > 1;
}

std::vector<std::size_t> ModelColumn::LayerFloats() const {
  std::vector<std::size_t> out;
  out.reserve(offsets_.size());
  for (std::size_t i = 0; i + 1 < offsets_.size(); ++i)
    out.push_back(offsets_[i + 1] - offsets_[i]);
  return out;
}

std::span<const float> ModelColumn::ParametersOf(std::size_t index,
                                                 std::span<const float> all) const {
  return all.subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
}

void ModelColumn::Start(std::uint64_t seed, std::span<float> parameters) const {
  for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
    const int layer = range_.first + static_cast<int>(i);
    const auto mine = parameters.subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
    if (CutInside(i)) {
      At(i).Start(seed, layer, cut_.slice, mine);
    } else {
      workload_.model().Start(seed, {layer, layer + 1}, mine);
    }
  }
}

void ModelColumn::Place(std::span<const float> mine, std::span<float> whole) const {
  for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
    const auto slice = CutInside(i) ? static_cast<std::size_t>(cut_.slice) : 0;
    const std::size_t at = workload_.model().Offset(range_.first + static_cast<int>(i));
    std::ranges::copy(ParametersOf(i, mine),
                      whole.subspan(at + slice * At(i).parameters()).begin());
  }
}

std::optional<Matrix> ModelColumn::SumOver(Matrix mine, std::size_t index, TagKind kind,
                                           Neighbours& neighbours) const {
  const int layer = static_cast<int>(index);
  const int first = cut_.stage * cut_.slices;
  for (int slice = 0; slice < cut_.slices; ++slice) {
    if (slice != cut_.slice) neighbours.Send(first + slice, kind, layer, mine.values());
  }
  std::vector<Matrix> summands;
  summands.reserve(static_cast<std::size_t>(cut_.slices));
  const Shape shape = mine.shape();
  for (int slice = 0; slice < cut_.slices; ++slice) {
    if (slice == cut_.slice) {
      std::swap(summands.emplace_back(), mine);
      continue;
    }
    summands.emplace_back(shape);
    if (!neighbours.Receive(first + slice, kind, layer, summands.back().values())) {
      return std::nullopt;
    }
  }
  return SumSlices(std::move(summands));
}

std::optional<Matrix> ModelColumn::LayerForward(std::size_t index,
                                                std::span<const float> parameters,
                                                const Matrix& input, std::vector<Saved>& saved,
                                                Neighbours& neighbours) const {
  const Layer& layer = At(index);
  if (!CutInside(index)) return ForwardAll(layer, parameters, input, saved);
  saved.resize(1);
  Matrix mine = layer.Forward(parameters, cut_.slice, input, saved[0]);
  auto sum = SumOver(std::move(mine), index, TagKind::kSumForward, neighbours);
  if (sum) layer.Finish(input, *sum);
  return sum;
}

std::optional<Matrix> ModelColumn::LayerBackward(std::size_t index, const Flight& flight,
                                                 const Matrix& output_gradient,
                                                 std::span<const float> parameters,
                                                 std::span<float> gradient,
                                                 Neighbours& neighbours) const {
  const Layer& layer = At(index);
  const Matrix& input = flight.tape.inputs[index];
  const auto& saved = flight.tape.saved[index];
  if (!CutInside(index)) {
    return BackwardAll(layer, parameters, input, saved, output_gradient, gradient);
  }
  Matrix mine = layer.Backward(parameters, cut_.slice, input, saved[0], output_gradient, gradient);
  auto sum = SumOver(std::move(mine), index, TagKind::kSumBackward, neighbours);
  if (sum) layer.FinishBackward(output_gradient, *sum);
  return sum;
}

bool ModelColumn::Forward(std::int64_t step, int shard, std::span<const float> parameters,
                          Neighbours& neighbours) {
  const auto samples = workload_.SamplesOf(step, shard);
  Flight flight;
  flight.samples = samples.size();
  if (!samples.empty()) {
    Batch batch;
    if (first() || last()) batch = Gather(workload_.train(), samples);
    Shape shape{samples.size(), workload_.model().input_cols()};
    for (int i = 0; i < range_.first; ++i) shape = workload_.model().layer(i).OutputShape(shape);
    Matrix values = first() ? std::move(batch.inputs) : Matrix(shape);
    if (!first() && !neighbours.Receive(NeighbourAt(cut_.stage - 1), TagKind::kActivation, 0,
                                        values.values())) {
      return false;
    }
    const std::size_t layers = offsets_.size() - 1;
    flight.tape.inputs.reserve(layers);
    flight.tape.saved.resize(layers);
    for (std::size_t i = 0; i < layers; ++i) {
      auto output =
          LayerForward(i, ParametersOf(i, parameters), values, flight.tape.saved[i], neighbours);
      if (!output) return false;
      flight.tape.inputs.push_back(std::exchange(values, std::move(*output)));
    }
    flight.output = values.shape();
    if (last()) {
      flight.loss = workload_.LossFor(values, batch.targets);
    } else {
      neighbours.Send(NeighbourAt(cut_.stage + 1), TagKind::kActivation, 0, values.values());
    }
  }
  const std::lock_guard lock(mutex_);
  flights_[shard] = std::move(flight);
  return true;
}

std::optional<ModelColumn::Flight> ModelColumn::Land(int shard) {
  const std::lock_guard lock(mutex_);
  auto found = flights_.extract(shard);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

ShardResult ModelColumn::Backward(std::int64_t /*step*/, int shard,
                                  std::span<const float> parameters, std::span<float> gradient,
                                  Neighbours& neighbours, ShardProgress& progress) {
  const auto flight = Land(shard);
  if (!flight) return {};
  if (flight->samples == 0) {
    std::ranges::fill(gradient, 0.0F);
    return {};
  }
  Matrix received;
  if (!last()) {
    received = Matrix(flight->output);
    const int next = NeighbourAt(cut_.stage + 1);
    if (!neighbours.Receive(next, TagKind::kGradient, 0, received.values())) return {};
  }
  const Matrix* back = last() ? &flight->loss.gradient : &received;
  for (std::size_t i = offsets_.size() - 1; i-- > 0;) {
    auto input_gradient =
        LayerBackward(i, *flight, *back, ParametersOf(i, parameters),
                      gradient.subspan(offsets_[i], offsets_[i + 1] - offsets_[i]), neighbours);
    if (!input_gradient) return {};
    received = std::move(*input_gradient);
    back = &received;
    if (i > 0 && !progress.Ready(offsets_[i])) return {};
  }
  if (!first()) {
    neighbours.Send(NeighbourAt(cut_.stage - 1), TagKind::kGradient, 0, back->values());
  }
  if (!last()) return {};
  return {flight->loss.mean() * static_cast<double>(flight->samples),
          static_cast<std::int64_t>(flight->samples)};
}

}  // namespace muster::train

#include "train/run/model_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "train/data/order.h"
#include "train/exact/shard_tree.h"
#include "train/run/model_column.h"

namespace muster::train {

Result<std::unique_ptr<ModelWorkload>> ModelWorkload::Open(const ModelRun& run) {
  const auto spec = ParseModel(run.model);
  if (!spec) return tl::unexpected(spec.error());
  const auto kernels = KernelsFor(run.kernels);
  if (!kernels) return tl::unexpected(kernels.error());
  const auto optimizer = ParseOptimizer(run.optimizer);
  if (!optimizer) return tl::unexpected(optimizer.error());
  const auto rate = ParseRate(run.rate);
  if (!rate) return tl::unexpected(rate.error());
  auto data = OpenDataset(run.data, spec->kind == ModelKind::kTransformer ? spec->context : 64);
  if (!data) return tl::unexpected(data.error());
  std::unique_ptr<ModelWorkload> out(
      new ModelWorkload(run, *spec, **kernels, *optimizer, *rate, std::move(*data)));
  const auto fits = CheckFits(out->model_, *out->data_.train);
  if (!fits) return tl::unexpected(fits.error());
  if (run.batch == 0)
    return Fail(ErrorCode::kInvalid, "a batch has at least one sample",
                "give --batch a number from 1 on");
  return out;
}

ModelWorkload::ModelWorkload(const ModelRun& run, const ModelSpec& spec, const Kernels& kernels,
                             const OptimizerSpec& optimizer, const RateSpec& rate,
                             TrainAndTest data)
    : run_(run),
      kernels_(kernels),
      model_(spec, kernels),
      optimizer_(kernels, optimizer),
      rate_(rate),
      data_(std::move(data)) {}

std::vector<std::size_t> ModelWorkload::LayerFloats() const {
  std::vector<std::size_t> out;
  out.reserve(static_cast<std::size_t>(model_.layers()));
  for (int layer = 0; layer < model_.layers(); ++layer) {
    out.push_back(model_.Offset(layer + 1) - model_.Offset(layer));
  }
  return out;
}

void ModelWorkload::Start(std::uint64_t seed, std::span<float> parameters) const {
  model_.Start(seed, model_.all(), parameters);
}

std::vector<std::uint64_t> ModelWorkload::SamplesOf(std::int64_t step, int shard) const {
  const auto run =
      RunsFor(run_.shards, static_cast<int>(run_.batch))[static_cast<std::size_t>(shard)];
  std::vector<std::uint64_t> out;
  out.reserve(static_cast<std::size_t>(run.size()));
  const auto first = static_cast<std::uint64_t>(step) * run_.batch;
  for (int i = run.first; i < run.last; ++i) {
    out.push_back(
        SampleDrawn(run_.seed, first + static_cast<std::uint64_t>(i), data_.train->size()));
  }
  return out;
}

ShardResult ModelWorkload::Compute(std::int64_t step, int shard, std::span<const float> parameters,
                                   std::span<float> gradient, ShardProgress& progress) {
  const auto samples = SamplesOf(step, shard);
  if (samples.empty()) {
    std::ranges::fill(gradient, 0.0F);
    progress.Ready(0);
    return {};
  }
  if (!progress.Need({0, parameters.size()})) return {};
  Batch batch = Gather(*data_.train, samples);
  Tape tape;
  const Matrix output = model_.Forward(model_.all(), parameters, std::move(batch.inputs), tape);
  const Loss loss = LossFor(output, batch.targets);
  model_.Backward(model_.all(), parameters, tape, loss.gradient, gradient,
                  [&](int layer) { progress.Ready(model_.Offset(layer)); });
  return {loss.mean() * static_cast<double>(samples.size()),
          static_cast<std::int64_t>(samples.size())};
}

Loss ModelWorkload::LossFor(const Matrix& output, const Matrix& targets) const {
  return LossOf(kernels_, data_.train->loss(), output, targets, run_.batch);
}

Result<std::unique_ptr<ColumnWork>> ModelWorkload::Column(const Cut& cut) {
  if (cut.stages == 1 && cut.slices == 1) return Workload::Column(cut);
  if (cut.stages > model_.layers()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} has {} layers, which do not fill {} stages", run_.model,
                            model_.layers(), cut.stages),
                "choose fewer stages");
  }
  int most = 1;
  for (int layer = 0; layer < model_.layers(); ++layer) {
    most = std::max(most, model_.layer(layer).slices());
  }
  if (cut.slices > 1 && most != cut.slices) {
    return Fail(
        ErrorCode::kInvalid,
        fmt::format("{} is made of {} {}, not of {}", run_.model, most,
                    most == 1 ? "slice" : "slices", cut.slices),
        fmt::format("add slices={} to the model (mlp and transformer have them)", cut.slices));
  }
  return std::make_unique<ModelColumn>(*this, cut);
}

std::vector<float> ModelWorkload::Join(const Grid& grid,
                                       const std::vector<std::vector<float>>& columns) const {
  std::vector<float> out(model_.parameters());
  for (int stage = 0; stage < grid.stages; ++stage) {
    for (int slice = 0; slice < grid.slices; ++slice) {
      const auto column = static_cast<std::size_t>(grid.Column(stage, slice));
      ModelColumn(*this, {grid.stages, stage, grid.slices, slice}).Place(columns[column], out);
    }
  }
  return out;
}

void ModelWorkload::Update(const UpdateStep& step, std::span<const float> gradient,
                           std::span<const float> parameters, std::span<const float> state,
                           std::span<float> new_parameters, std::span<float> new_state) const {
  UpdateIn in{parameters, gradient, {}};
  UpdateOut out{new_parameters, {}};
  for (std::size_t plane = 0; plane < optimizer_.StateFloats(); ++plane) {
    in.state[plane] = state.subspan(plane * gradient.size(), gradient.size());
    out.state[plane] = new_state.subspan(plane * gradient.size(), gradient.size());
  }
  optimizer_.Update(step.last(), ScaledRate(rate_, step.middle(), step.rate), in, out,
                    step.batches);
}

std::string ModelWorkload::Describe() const {
  return fmt::format("model {}; {}; batch {}; optimizer {}; rate {}", run_.model,
                     DataTerms(run_.data, *data_.train), run_.batch, run_.optimizer, run_.rate);
}

std::string ModelWorkload::ComputedWith() const { return fmt::format("kernels {}", kernels_.name); }

ModelWorkload::Score ModelWorkload::Test(std::span<const float> parameters) const {
  constexpr std::size_t kAtOnce = 64;
  Score out;
  out.classes = data_.test->loss() == LossKind::kCrossEntropy;
  double rows = 0, correct = 0;
  for (std::size_t first = 0; first < data_.test->size(); first += kAtOnce) {
    std::vector<std::uint64_t> samples(std::min(kAtOnce, data_.test->size() - first));
    std::iota(samples.begin(), samples.end(), first);
    Batch batch = Gather(*data_.test, samples);
    Tape tape;
    const Matrix output = model_.Forward(model_.all(), parameters, std::move(batch.inputs), tape);
    const Loss loss = LossOf(kernels_, data_.test->loss(), output, batch.targets, samples.size());
    out.loss += loss.sum;
    rows += static_cast<double>(loss.count);
    correct += static_cast<double>(loss.correct);
    out.samples += samples.size();
  }
  if (rows > 0) {
    out.loss /= rows;
    out.correct = correct / rows;
  }
  return out;
}

}  // namespace muster::train

#include "train/torch/torch_run.h"

#include <torch/nn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "train/compute/settings.h"
#include "train/data/dataset.h"
#include "train/data/order.h"
#include "train/exact/shard_tree.h"
#include "train/torch/torch_workload.h"

namespace muster::train {

namespace {

namespace nn = torch::nn;

// Outputs for each class, in rows.
class Classifier : public nn::Module {
 public:
  virtual torch::Tensor Forward(const torch::Tensor& inputs) = 0;
};

// No pooling: on a GPU its gradient has sums in no fixed order. Strides do instead.
class Conv final : public Classifier {
 public:
  explicit Conv(std::int64_t side)
      : side_(side),
        first_(register_module("first", nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)))),
        second_(register_module("second",
                                nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1).stride(2)))),
        hidden_(register_module("hidden", nn::Linear(32 * (side / 2) * (side / 2), 64))),
        classes_(register_module("classes", nn::Linear(64, 10))) {}

  torch::Tensor Forward(const torch::Tensor& inputs) override {
    auto x = inputs.view({inputs.size(0), 1, side_, side_});
    x = torch::relu(second_(torch::relu(first_(x))));
    return classes_(torch::relu(hidden_(x.flatten(1))));
  }

 private:
  std::int64_t side_;
  nn::Conv2d first_, second_;
  nn::Linear hidden_, classes_;
};

struct TransformerSizes {
  std::int64_t layers = 2, width = 64, heads = 4, context = 64, vocabulary = 0;
  double dropout = 0;
};

class Block final : public nn::Module {
 public:
  explicit Block(const TransformerSizes& sizes)
      : heads_(sizes.heads),
        norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({sizes.width})))),
        attend_(register_module("attend", nn::Linear(sizes.width, 3 * sizes.width))),
        merge_(register_module("merge", nn::Linear(sizes.width, sizes.width))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({sizes.width})))),
        up_(register_module("up", nn::Linear(sizes.width, 4 * sizes.width))),
        down_(register_module("down", nn::Linear(4 * sizes.width, sizes.width))),
        drop_(register_module("drop", nn::Dropout(sizes.dropout))) {}

  torch::Tensor Forward(torch::Tensor x, const torch::Tensor& later) {
    const auto n = x.size(0), length = x.size(1), width = x.size(2);
    const auto parts =
        attend_(norm1_(x)).view({n, length, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
    const auto query = parts[0], key = parts[1], value = parts[2];
    auto weights = torch::matmul(query, key.transpose(-2, -1)) /
                   std::sqrt(static_cast<double>(width / heads_));
    weights =
        torch::softmax(weights.masked_fill(later, -std::numeric_limits<float>::infinity()), -1);
    const auto seen =
        torch::matmul(weights, value).transpose(1, 2).contiguous().view({n, length, width});
    x = x + drop_(merge_(seen));
    return x + drop_(down_(torch::gelu(up_(norm2_(x)))));
  }

 private:
  std::int64_t heads_;
  nn::LayerNorm norm1_;
  nn::Linear attend_, merge_;
  nn::LayerNorm norm2_;
  nn::Linear up_, down_;
  nn::Dropout drop_;
};

class Transformer final : public Classifier {
 public:
  explicit Transformer(const TransformerSizes& sizes)
      : characters_(register_module("characters", nn::Embedding(sizes.vocabulary, sizes.width))),
        places_(register_module("places", nn::Embedding(sizes.context, sizes.width))) {
    blocks_.reserve(static_cast<std::size_t>(sizes.layers));
    for (std::int64_t i = 0; i < sizes.layers; ++i) {
      blocks_.push_back(
          register_module("block" + std::to_string(i), std::make_shared<Block>(sizes)));
    }
    norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({sizes.width})));
    next_ = register_module("next", nn::Linear(sizes.width, sizes.vocabulary));
  }

  torch::Tensor Forward(const torch::Tensor& inputs) override {
    const auto length = inputs.size(1);
    const auto whole = torch::TensorOptions(torch::kLong).device(inputs.device());
    const auto later = torch::ones({length, length}, whole.dtype(torch::kBool)).triu(1);
    auto x = characters_(inputs.to(torch::kLong)) + places_(torch::arange(length, whole));
    for (const auto& block : blocks_) x = block->Forward(x, later);
    return next_(norm_(x)).flatten(0, 1);
  }

 private:
  nn::Embedding characters_, places_;
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::LayerNorm norm_{nullptr};
  nn::Linear next_{nullptr};
};

// Those that a built-in model takes.
std::vector<std::uint64_t> SamplesOf(const ModelRun& run, std::size_t epoch, std::int64_t step,
                                     int shard) {
  const auto mine =
      RunsFor(run.shards, static_cast<int>(run.batch))[static_cast<std::size_t>(shard)];
  std::vector<std::uint64_t> out;
  out.reserve(static_cast<std::size_t>(mine.size()));
  for (int i = mine.first; i < mine.last; ++i) {
    const auto drawn = static_cast<std::uint64_t>(step) * run.batch + static_cast<std::uint64_t>(i);
    out.push_back(SampleDrawn(run.seed, drawn, epoch));
  }
  return out;
}

TorchBatch BatchOf(const Dataset& dataset, const std::vector<std::uint64_t>& samples) {
  const auto rows = static_cast<std::int64_t>(samples.size());
  TorchBatch out;
  out.samples = rows;
  out.inputs = torch::empty({rows, static_cast<std::int64_t>(dataset.input_cols())});
  auto targets = torch::empty({rows, static_cast<std::int64_t>(dataset.target_cols())});
  float* input = out.inputs.data_ptr<float>();
  float* target = targets.data_ptr<float>();
  for (const auto sample : samples) {
    dataset.Sample(sample, {input, dataset.input_cols()}, {target, dataset.target_cols()});
    input += dataset.input_cols();
    target += dataset.target_cols();
  }
  out.targets = targets.flatten().to(torch::kLong);
  return out;
}

torch::Tensor Losses(const torch::Tensor& outputs, const torch::Tensor& targets) {
  return nn::functional::cross_entropy(
      outputs, targets, nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
}

Result<TransformerSizes> ParseSizes(const Settings& settings) {
  TransformerSizes out;
  const auto want = [](std::string_view name, std::int64_t& value) {
    return Wanted{.name = name, .integer = &value, .least = 1, .most = 1 << 20};
  };
  const Wanted wanted[] = {
      want("layers", out.layers),    want("width", out.width),
      want("heads", out.heads),      want("context", out.context),
      want("vocab", out.vocabulary), {.name = "dropout", .number = &out.dropout, .most = 0.9}};
  if (const auto read = ReadSettings(settings, wanted); !read) {
    return tl::unexpected(read.error());
  }
  if (out.width % out.heads != 0) {
    return Fail(ErrorCode::kInvalid, settings.text + ": the heads do not divide the width",
                "choose a width that the heads divide");
  }
  return out;
}

// What a run is made of before torch is asked.
struct Parts {
  std::function<std::shared_ptr<Classifier>()> make;
  std::shared_ptr<const TrainAndTest> data;
};

Result<Parts> PartsOf(const ModelRun& run) {
  const auto settings = ParseSettings(run.model);
  if (!settings) return tl::unexpected(settings.error());
  const bool text = settings->word == "transformer";
  const bool pictures = run.model == "conv:digits" || run.model == "conv:fashion";
  if (!text && !pictures) {
    return Fail(ErrorCode::kInvalid, "no model '" + run.model + "'", kTorchModels);
  }
  auto sizes = text ? ParseSizes(*settings) : TransformerSizes{};
  if (!sizes) return tl::unexpected(sizes.error());
  auto data = OpenDataset(run.data, static_cast<std::size_t>(sizes->context));
  if (!data) return tl::unexpected(data.error());
  const auto& train = *data->train;
  const auto outputs = static_cast<std::int64_t>(train.outputs());
  const std::int64_t side = run.model == "conv:digits" ? 8 : 28;
  const auto inputs = static_cast<std::size_t>(text ? sizes->context : side * side);
  if (sizes->vocabulary == 0) sizes->vocabulary = outputs;
  if (train.loss() != LossKind::kCrossEntropy || train.input_cols() != inputs ||
      train.target_cols() != (text ? inputs : 1) || outputs > (text ? sizes->vocabulary : 10)) {
    return Fail(ErrorCode::kInvalid, "the model " + run.model + " does not fit " + train.Describe(),
                "conv:digits with digits, conv:fashion with fashion, transformer with text");
  }
  Parts out;
  out.data = std::make_shared<const TrainAndTest>(std::move(*data));
  out.make = [text, side, made = *sizes]() -> std::shared_ptr<Classifier> {
    if (text) return std::make_shared<Transformer>(made);
    return std::make_shared<Conv>(side);
  };
  return out;
}

ModelWorkload::Score Test(TorchWorkload& workload, const Dataset& dataset,
                          std::span<const float> parameters) {
  constexpr std::size_t kAtOnce = 256;
  auto& model = dynamic_cast<Classifier&>(workload.With(parameters));
  const torch::NoGradGuard no_gradients;
  model.eval();
  ModelWorkload::Score out;
  out.classes = true;
  double rows = 0;
  for (std::size_t first = 0; first < dataset.size(); first += kAtOnce) {
    std::vector<std::uint64_t> samples(std::min(kAtOnce, dataset.size() - first));
    std::iota(samples.begin(), samples.end(), first);
    const auto batch = workload.Here(BatchOf(dataset, samples));
    const auto outputs = model.Forward(batch.inputs);
    out.loss += Losses(outputs, batch.targets).item<double>();
    out.correct +=
        static_cast<double>(outputs.argmax(1).eq(batch.targets).sum().item<std::int64_t>());
    rows += static_cast<double>(batch.targets.numel());
    out.samples += samples.size();
  }
  model.train();
  out.loss /= rows;
  out.correct /= rows;
  return out;
}

}  // namespace

Result<OpenedWorkload> OpenTorchRun(const ModelRun& run, const TorchFlags& flags) {
  if (run.batch == 0) return Fail(ErrorCode::kInvalid, "a batch has at least one sample");
  const auto parts = PartsOf(run);
  if (!parts) return tl::unexpected(parts.error());
  TorchJob job;
  job.batch = run.batch;
  job.terms = "model " + run.model + "; " + DataTerms(run.data, *parts->data->train);
  job.make = parts->make;
  // A sample with several targets counts their mean.
  job.loss = [](nn::Module& module, const TorchBatch& batch) {
    const auto outputs = dynamic_cast<Classifier&>(module).Forward(batch.inputs);
    return Losses(outputs, batch.targets) *
           (static_cast<double>(batch.samples) / static_cast<double>(batch.targets.numel()));
  };
  job.epoch_samples = parts->data->train->size();
  job.samples = [run, data = parts->data](std::int64_t step, int shard) {
    return SamplesOf(run, data->train->size(), step, shard);
  };
  job.data = [data = parts->data, samples = job.samples](std::int64_t step, int shard) {
    return BatchOf(*data->train, samples(step, shard));
  };
  auto opened = TorchWorkload::Open(std::move(job), {.device = flags.device,
                                                     .precision = flags.precision,
                                                     .loss_scale = flags.loss_scale,
                                                     .threads = flags.threads,
                                                     .sum = flags.sum,
                                                     .optimizer = run.optimizer,
                                                     .rate = run.rate,
                                                     .kernels = run.kernels,
                                                     .seed = run.seed});
  if (!opened) return tl::unexpected(opened.error());
  OpenedWorkload out;
  out.test = [torch = opened->get(), data = parts->data](std::span<const float> parameters) {
    return Test(*torch, *data->test, parameters);
  };
  out.used = [torch = opened->get()] { return torch->Used(); };
  out.workload = std::move(*opened);
  return out;
}

}  // namespace muster::train

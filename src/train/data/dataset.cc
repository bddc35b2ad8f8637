#include "train/data/dataset.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "train/data/files.h"
#include "train/data/order.h"
#include "train/data/synthetic.h"
#include "train/exact/hash.h"

namespace muster::train {

namespace {

// Samples [first, last) of a dataset in an order of their own.
class Part : public Dataset {
 public:
  Part(std::shared_ptr<const Dataset> whole, std::size_t first, std::size_t last)
      : whole_(std::move(whole)), first_(first), last_(last) {}

  std::string Describe() const override { return whole_->Describe(); }
  std::size_t size() const override { return last_ - first_; }
  std::size_t input_cols() const override { return whole_->input_cols(); }
  std::size_t target_cols() const override { return whole_->target_cols(); }
  std::size_t outputs() const override { return whole_->outputs(); }
  LossKind loss() const override { return whole_->loss(); }
  std::uint64_t Digest() const override { return whole_->Digest(); }

  void Sample(std::size_t index, std::span<float> input, std::span<float> target) const override {
    constexpr std::uint64_t kSeed = 0x73706c6974;  // "split"
    whole_->Sample(SampleAt(kSeed, 0, first_ + index, whole_->size()), input, target);
  }

 private:
  std::shared_ptr<const Dataset> whole_;
  std::size_t first_, last_;
};

}  // namespace

std::uint64_t Dataset::Digest() const {
  std::vector<float> sample(input_cols() + target_cols());
  const std::span all(sample);
  std::uint64_t hash = kFirstHash;
  for (std::size_t index = 0; index < size(); ++index) {
    Sample(index, all.first(input_cols()), all.subspan(input_cols()));
    hash = HashOf(sample, hash);
  }
  return hash;
}

std::string DataTerms(std::string_view name, const Dataset& train) {
  return fmt::format("data {}; samples {}; digest {:016x}", name.substr(0, name.find(':')),
                     train.size(), train.Digest());
}

Batch Gather(const Dataset& dataset, std::span<const std::uint64_t> samples) {
  Batch out{Matrix(samples.size(), dataset.input_cols()),
            Matrix(samples.size(), dataset.target_cols())};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    dataset.Sample(samples[i], out.inputs.row(i), out.targets.row(i));
  }
  return out;
}

Result<void> CheckFits(const Model& model, const Dataset& dataset) {
  if (model.input_cols() != dataset.input_cols()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("the model takes {} inputs, a sample has {}: {}", model.input_cols(),
                            dataset.input_cols(), dataset.Describe()),
                "choose a model whose first size, image or context is that of the data");
  }
  const bool classes = dataset.loss() == LossKind::kCrossEntropy;
  if (classes ? model.outputs() < dataset.outputs() : model.outputs() != dataset.outputs()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("the model has {} outputs, the data needs {}: {}", model.outputs(),
                            dataset.outputs(), dataset.Describe()),
                "choose a model whose last size, or vocab, is that of the data");
  }
  return {};
}

TrainAndTest Split(const std::shared_ptr<const Dataset>& dataset) {
  const std::size_t size = dataset->size();
  const std::size_t cut = size - size / 5;
  return {std::make_unique<Part>(dataset, 0, cut), std::make_unique<Part>(dataset, cut, size)};
}

Result<TrainAndTest> OpenDataset(std::string_view name, std::size_t context) {
  const auto colon = name.find(':');
  const auto word = name.substr(0, colon);
  const std::string path(colon == std::string_view::npos ? "" : name.substr(colon + 1));
  if (word == "digits") {
    const char* home = std::getenv("HOME");
    const auto found =
        path.empty() ? FindDigits(home == nullptr ? "" : home) : Result<std::string>(path);
    if (!found) return tl::unexpected(found.error());
    return OpenDigits(*found);
  }
  if (word == "fashion") return OpenFashion(path.empty() ? kFashionFolder : path);
  if (word == "text") return OpenText(path.empty() ? kTextFile : path, context);
  if (path.empty()) {
    constexpr std::uint64_t kSeed = 1;
    if (word == "linear") return Split(std::make_shared<LinearRegression>(kSeed, 1000, 8));
    if (word == "teacher") return Split(MakeTeacher(kSeed, 4000, 16, 32));
    if (word == "modular") return Split(MakeModularAddition(29));
  }
  return Fail(ErrorCode::kInvalid, fmt::format("no data '{}'", name),
              "digits[:FILE], fashion[:FOLDER], text[:FILE], linear, teacher or modular");
}

}  // namespace muster::train

// Dataset: samples by number, each a row of inputs and a row of targets.
//
// Everything is in memory and nothing changes, so any number of threads may read, and a sample is
// the same whoever asks for it. Named by a short text: "digits", "digits:FILE", "fashion:FOLDER",
// "text:FILE", "linear", "teacher", "modular".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "train/compute/loss.h"
#include "train/compute/matrix.h"
#include "train/compute/model.h"

namespace muster::train {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::string Describe() const = 0;  // "handwritten digits, 8 x 8, from FILE"
  virtual std::size_t size() const = 0;
  virtual std::size_t input_cols() const = 0;
  virtual std::size_t target_cols() const = 0;
  // The outputs that a model must have: classes (targets are numbers of classes), or as many
  // numbers as there are targets.
  virtual std::size_t outputs() const = 0;
  virtual LossKind loss() const = 0;

  virtual void Sample(std::size_t index, std::span<float> input, std::span<float> target) const = 0;
  // Equal for equal samples in the same order; of other sets it differs. Looks at all of them.
  virtual std::uint64_t Digest() const;
};

struct Batch {
  Matrix inputs, targets;
};
Batch Gather(const Dataset& dataset, std::span<const std::uint64_t> samples);

// Whether the model takes the inputs of the data and has its outputs. It may have more classes.
Result<void> CheckFits(const Model& model, const Dataset& dataset);

// Apart: no sample of one is in the other.
struct TrainAndTest {
  std::unique_ptr<Dataset> train, test;
};

// A fifth of the samples to test, drawn by a seed of its own; the split is always the same.
TrainAndTest Split(const std::shared_ptr<const Dataset>& dataset);

// "data text; samples 31634; digest 0123456789abcdef": what the name stands for, wherever the files
// lie.
std::string DataTerms(std::string_view name, const Dataset& train);

// `context`: characters of a sample of a text; the others do not use it.
Result<TrainAndTest> OpenDataset(std::string_view name, std::size_t context = 64);

}  // namespace muster::train

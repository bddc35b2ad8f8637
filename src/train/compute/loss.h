// Loss: how far outputs are from their targets, and the gradient to begin with.
//
// The loss of a step is the mean over its whole batch. A shard is handed the number of samples of
// the batch, and divides its gradient by that, so that the sum over shards is the gradient of the
// mean. Values are sums: add those of the shards, in the order of ShardTree, and divide at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "train/compute/kernels.h"
#include "train/compute/matrix.h"

namespace muster::train {

enum class LossKind {
  kCrossEntropy,  // of softmax(output) and a class, natural logarithm; a target for each row
  kSquaredError,  // mean over the columns; a target for each number
};

struct Loss {
  double sum = 0;            // over the targets; / count is the mean
  std::int64_t count = 0;    // rows
  std::int64_t correct = 0;  // rows whose highest output is their class; kCrossEntropy only
  Matrix gradient;           // of the output

  double mean() const { return sum / static_cast<double>(count); }
};

// A row of targets for each sample. A sample may have several rows of output (one for each token),
// then it has as many targets.
Loss LossOf(const Kernels& kernels, LossKind kind, const Matrix& output, const Matrix& targets,
            std::size_t batch_samples);

}  // namespace muster::train

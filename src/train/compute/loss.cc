#include "train/compute/loss.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace muster::train {

namespace {

Loss CrossEntropy(const Kernels& kernels, const Matrix& output, const Matrix& targets,
                  std::size_t batch_samples) {
  MUSTER_CHECK(targets.size() == output.rows(), "each row of the output has one class");
  Loss out;
  out.gradient = Matrix(output.shape());
  std::ranges::copy(output.values(), out.gradient.values().begin());
  out.count = static_cast<std::int64_t>(output.rows());
  const auto divisor = static_cast<float>(batch_samples * targets.cols());
  for (std::size_t i = 0; i < output.rows(); ++i) {
    const auto row = out.gradient.row(i);
    const auto target = static_cast<std::size_t>(targets.values()[i]);
    MUSTER_CHECK(target < row.size(), "a class is one of the outputs");
    const float score = row[target];
    if (std::ranges::max_element(row) == row.begin() + static_cast<std::ptrdiff_t>(target)) {
      ++out.correct;
    }
    const auto [highest, sum] = kernels.softmax(row.size(), row.size(), 1, row.data());
    out.sum += static_cast<double>(highest - score) + std::log(static_cast<double>(sum));
    row[target] -= 1.0F;
    for (float& value : row) value /= divisor;
  }
  return out;
}

Loss SquaredError(const Matrix& output, const Matrix& targets, std::size_t batch_samples) {
  MUSTER_CHECK(targets.shape() == output.shape(), "each number of the output has a target");
  Loss out;
  out.gradient = Matrix(output.shape());
  out.count = static_cast<std::int64_t>(output.rows());
  const auto cols = static_cast<double>(output.cols());
  const auto divisor = static_cast<float>(batch_samples * output.cols());
  for (std::size_t i = 0; i < output.size(); ++i) {
    const float distance = output.values()[i] - targets.values()[i];
    out.sum += static_cast<double>(distance) * static_cast<double>(distance) / cols;
    out.gradient.values()[i] = 2.0F * distance / divisor;
  }
  return out;
}

}  // namespace

Loss LossOf(const Kernels& kernels, LossKind kind, const Matrix& output, const Matrix& targets,
            std::size_t batch_samples) {
  return kind == LossKind::kCrossEntropy ? CrossEntropy(kernels, output, targets, batch_samples)
                                         : SquaredError(output, targets, batch_samples);
}

}  // namespace muster::train

// Matrix: floats by rows in memory of its own, aligned to 64 bytes.
//
// A row for each sample, or for each token of each sample. It can be moved and not copied, so that
// no activation is copied by accident.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace muster::train {

struct Shape {
  std::size_t rows = 0;
  std::size_t cols = 0;
  friend bool operator==(const Shape&, const Shape&) = default;
};

class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols);  // zero
  explicit Matrix(Shape shape) : Matrix(shape.rows, shape.cols) {}

  std::size_t rows() const { return shape_.rows; }
  std::size_t cols() const { return shape_.cols; }
  Shape shape() const { return shape_; }
  std::size_t size() const { return shape_.rows * shape_.cols; }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> values() { return {data_.get(), size()}; }
  std::span<const float> values() const { return {data_.get(), size()}; }
  std::span<float> row(std::size_t i) { return values().subspan(i * cols(), cols()); }
  std::span<const float> row(std::size_t i) const { return values().subspan(i * cols(), cols()); }

 private:
  struct Free {
    void operator()(float* data) const;
  };
  Shape shape_;
  std::unique_ptr<float, Free> data_;
};

// For a program that trains, at its start: memory that is freed stays with the process, because the
// next step asks for the same again. Else every step pays for fresh pages.
void KeepFreedMemory();

}  // namespace muster::train

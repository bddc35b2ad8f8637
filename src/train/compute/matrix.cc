#include "train/compute/matrix.h"

#include <malloc.h>

#include <cstring>
#include <new>

namespace muster::train {

namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

Matrix::Matrix(std::size_t rows, std::size_t cols)
    : shape_{rows, cols},
      data_(static_cast<float*>(::operator new(rows* cols * sizeof(float), kAlignment))) {
  std::memset(data_.get(), 0, size() * sizeof(float));
}

void Matrix::Free::operator()(float* data) const { ::operator delete(data, kAlignment); }

void KeepFreedMemory() {
  constexpr int kMost = 32 << 20;  // that the C library takes for the first
  mallopt(M_MMAP_THRESHOLD, kMost);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

}  // namespace muster::train

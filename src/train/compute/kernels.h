// Kernels: the loops that training spends its time in, compiled once for each level of the CPU.
//
// A level is chosen at run time by what the CPU has, or by hand. Matrix products sum in an order of
// their own on each level and for each shape, so bits are promised for one level only (the name
// goes into what a run reports); everything else gives the same bits on all of them. Nothing here
// depends on the alignment of what it is handed, on threads or on the size of caches.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::train {

// to (rows x cols) = a * b, or += with `add`. Row i of a matrix begins i * stride floats after its
// first; a transposed one is stored the other way round.
struct Product {
  std::size_t rows = 0, depth = 0, cols = 0;
  const float* a = nullptr;
  std::size_t a_stride = 0;
  bool a_transposed = false;
  const float* b = nullptr;
  std::size_t b_stride = 0;
  bool b_transposed = false;  // not together with a_transposed
  float* to = nullptr;
  std::size_t to_stride = 0;
  bool add = false;
};

struct AdamStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  float correction1, correction2;  // 1 / (1 - beta^step)
};

// log(sum(exp(x))) is highest + log(sum).
struct SoftmaxSum {
  float highest, sum;
};

struct Kernels {
  std::string_view name;  // "base", "avx2", "avx512"

  void (*multiply)(const Product& product);

  // Each row of x gets the bias added; sums over the rows of x.
  void (*add_bias)(std::size_t rows, std::size_t cols, const float* bias, float* x);
  void (*sum_rows)(std::size_t rows, std::size_t cols, const float* x, float* sums);

  // y = f(x); and dx = dy * f'(x). x and y may be the same memory.
  void (*relu)(std::size_t n, const float* x, float* y);
  void (*relu_back)(std::size_t n, const float* x, const float* dy, float* dx);
  void (*gelu)(std::size_t n, const float* x, float* y);  // by tanh
  void (*gelu_back)(std::size_t n, const float* x, const float* dy, float* dx);

  // One row: x becomes softmax(scale * x) over its first `used` numbers, the rest zero. And the
  // gradient, with y the softmax: dy becomes dx.
  SoftmaxSum (*softmax)(std::size_t used, std::size_t cols, float scale, float* x);
  void (*softmax_back)(std::size_t used, std::size_t cols, float scale, const float* y, float* dy);

  // Rows to mean 0 and variance 1; `inverse` keeps 1 / deviation of each. And the gradient, with y
  // the result.
  void (*normalise)(std::size_t rows, std::size_t cols, const float* x, float* y, float* inverse);
  void (*normalise_back)(std::size_t rows, std::size_t cols, const float* y, const float* inverse,
                         const float* dy, float* dx);

  // Optimisers, elementwise. In and out may be the same memory.
  void (*sgd)(std::size_t n, float learning_rate, float momentum, float weight_decay,
              const float* parameters, const float* gradient, const float* velocity,
              float* new_parameters, float* new_velocity);  // no velocity: nullptr
  void (*adam)(std::size_t n, const AdamStep& step, const float* parameters, const float* gradient,
               const float* first, const float* second, float* new_parameters, float* new_first,
               float* new_second);
};

// What this CPU can run, the slowest first; never empty.
std::vector<std::string> KernelLevels();

// By name; "auto" is the fastest that this CPU can run.
Result<const Kernels*> KernelsFor(std::string_view name);

}  // namespace muster::train

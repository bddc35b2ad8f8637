// The body of the kernels: included once by each kernels_LEVEL.cc, which is compiled for its level.
//
// The linker keeps one copy of an inline function, whichever file it was compiled in: a copy made
// for a newer CPU would then run on an older one. So everything here is in an unnamed namespace,
// Eigen goes into a namespace of the level, and nothing else is included that has code.
// Sums run over 16 lanes, which are added as a tree: the same bits whatever the width of a vector.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MPL2_ONLY
#define EIGEN_NO_DEBUG
#define EIGEN_NO_IO
#define Eigen MUSTER_EIGEN
#include <Eigen/Core>
#undef Eigen

#include "train/compute/kernels.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body, not a header; each file has a copy of its own.
namespace muster::train {
namespace {

namespace eigen = MUSTER_EIGEN;

using Stored = eigen::Matrix<float, eigen::Dynamic, eigen::Dynamic, eigen::RowMajor>;
using In = eigen::Map<const Stored, eigen::Unaligned, eigen::OuterStride<>>;
using Out = eigen::Map<Stored, eigen::Unaligned, eigen::OuterStride<>>;

eigen::Index Index(std::size_t n) { return static_cast<eigen::Index>(n); }

template <typename A, typename B>
void Assign(const A& a, const B& b, bool add, Out to) {
  if (add) {
    to.noalias() += a * b;
  } else {
    to.noalias() = a * b;
  }
}

void Multiply(const Product& p) {
  // How Eigen cuts a product, and so the order of its sums, depends on the caches that it sees.
  static const bool pinned = [] {
    eigen::setCpuCacheSizes(32 << 10, 512 << 10, 4 << 20);
    return true;
  }();
  static_cast<void>(pinned);
  const auto map = [](const float* at, std::size_t rows, std::size_t cols, std::size_t stride) {
    return In(at, Index(rows), Index(cols), eigen::OuterStride<>(Index(stride)));
  };
  const Out to(p.to, Index(p.rows), Index(p.cols), eigen::OuterStride<>(Index(p.to_stride)));
  if (p.a_transposed) {
    Assign(map(p.a, p.depth, p.rows, p.a_stride).transpose(), map(p.b, p.depth, p.cols, p.b_stride),
           p.add, to);
  } else if (p.b_transposed) {
    Assign(map(p.a, p.rows, p.depth, p.a_stride), map(p.b, p.cols, p.depth, p.b_stride).transpose(),
           p.add, to);
  } else {
    Assign(map(p.a, p.rows, p.depth, p.a_stride), map(p.b, p.depth, p.cols, p.b_stride), p.add, to);
  }
}

constexpr std::size_t kLanes = 16;

// The sum of value(i) over all i below n, in lanes that the compiler makes vectors of.
template <typename Value>
inline float SumOf(std::size_t n, const Value& value) {
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += value(i + lane);
  }
  for (std::size_t lane = 0; i + lane < n; ++lane) lanes[lane] += value(i + lane);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

float Sum(std::size_t n, const float* x) {
  return SumOf(n, [x](std::size_t i) { return x[i]; });
}

float Dot(std::size_t n, const float* x, const float* y) {
  return SumOf(n, [x, y](std::size_t i) { return x[i] * y[i]; });
}

// exp(x) to about 2 units in the last place; held to the range of normal floats.
inline float Exp(float x) {
  constexpr float kMagic = 0x1.8p23F;  // adding it rounds to an integer, in the low bits
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float shifted = x * 1.44269504F + kMagic;
  const float whole = shifted - kMagic;
  const float rest = (x - whole * 0.693359375F) - whole * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * rest + 1.3981999507e-3F;
  p = p * rest + 8.3334519073e-3F;
  p = p * rest + 4.1665795894e-2F;
  p = p * rest + 1.6666665459e-1F;
  p = p * rest + 5.0000001201e-1F;
  p = p * (rest * rest) + rest + 1.0F;
  const auto power = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kMagic);
  return p * std::bit_cast<float>((power + 127U) << 23U);
}

void AddBias(std::size_t rows, std::size_t cols, const float* bias, float* x) {
  for (std::size_t i = 0; i < rows; ++i, x += cols) {
    for (std::size_t j = 0; j < cols; ++j) x[j] += bias[j];
  }
}

void SumRows(std::size_t rows, std::size_t cols, const float* x, float* sums) {
  for (std::size_t j = 0; j < cols; ++j) sums[j] = 0;
  for (std::size_t i = 0; i < rows; ++i, x += cols) {
    for (std::size_t j = 0; j < cols; ++j) sums[j] += x[j];
  }
}

void Relu(std::size_t n, const float* x, float* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

void ReluBack(std::size_t n, const float* x, const float* dy, float* dx) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : 0;
}

// x * sigmoid(2 u), which is x / 2 * (1 + tanh(u)).
constexpr float kGelu = 0.79788456F;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

inline float GeluGate(float x) {
  return 1.0F / (1.0F + Exp(-2.0F * kGelu * (x + kCubic * x * x * x)));
}

void Gelu(std::size_t n, const float* x, float* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * GeluGate(x[i]);
}

void GeluBack(std::size_t n, const float* x, const float* dy, float* dx) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gate = GeluGate(x[i]);
    const float slope = 2.0F * kGelu * (1.0F + 3.0F * kCubic * x[i] * x[i]);
    dx[i] = dy[i] * (gate + x[i] * gate * (1.0F - gate) * slope);
  }
}

float Highest(std::size_t n, const float* x) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = x[0];
  const auto larger = [](float a, float b) { return a > b ? a : b; };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = larger(x[i + lane], lanes[lane]);
  }
  for (; i < n; ++i) lanes[0] = larger(x[i], lanes[0]);
  float out = lanes[0];
  for (const float lane : lanes) out = larger(lane, out);
  return out;
}

SoftmaxSum Softmax(std::size_t used, std::size_t cols, float scale, float* x) {
  const float highest = Highest(used, x);
  for (std::size_t i = 0; i < used; ++i) x[i] = Exp(scale * (x[i] - highest));
  const float sum = Sum(used, x);
  const float inverse = 1.0F / sum;
  for (std::size_t i = 0; i < used; ++i) x[i] *= inverse;
  for (std::size_t i = used; i < cols; ++i) x[i] = 0;
  return {scale * highest, sum};
}

void SoftmaxBack(std::size_t used, std::size_t cols, float scale, const float* y, float* dy) {
  const float mean = Dot(used, y, dy);
  for (std::size_t i = 0; i < used; ++i) dy[i] = scale * y[i] * (dy[i] - mean);
  for (std::size_t i = used; i < cols; ++i) dy[i] = 0;
}

constexpr float kVarianceFloor = 1e-5F;

void Normalise(std::size_t rows, std::size_t cols, const float* x, float* y, float* inverse) {
  const auto n = static_cast<float>(cols);
  for (std::size_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const float mean = Sum(cols, x) / n;
    for (std::size_t j = 0; j < cols; ++j) y[j] = x[j] - mean;
    inverse[i] = 1.0F / std::sqrt(Dot(cols, y, y) / n + kVarianceFloor);
    for (std::size_t j = 0; j < cols; ++j) y[j] *= inverse[i];
  }
}

void NormaliseBack(std::size_t rows, std::size_t cols, const float* y, const float* inverse,
                   const float* dy, float* dx) {
  const auto n = static_cast<float>(cols);
  for (std::size_t i = 0; i < rows; ++i, y += cols, dy += cols, dx += cols) {
    const float mean = Sum(cols, dy) / n;
    const float along = Dot(cols, dy, y) / n;
    for (std::size_t j = 0; j < cols; ++j) dx[j] = inverse[i] * (dy[j] - mean - y[j] * along);
  }
}

void Sgd(std::size_t n, float learning_rate, float momentum, float weight_decay,
         const float* parameters, const float* gradient, const float* velocity,
         float* new_parameters, float* new_velocity) {
  if (velocity == nullptr) {
    for (std::size_t i = 0; i < n; ++i) {
      new_parameters[i] =
          parameters[i] - learning_rate * (gradient[i] + weight_decay * parameters[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const float v = momentum * velocity[i] + (gradient[i] + weight_decay * parameters[i]);
    new_velocity[i] = v;
    new_parameters[i] = parameters[i] - learning_rate * v;
  }
}

void Adam(std::size_t n, const AdamStep& step, const float* parameters, const float* gradient,
          const float* first, const float* second, float* new_parameters, float* new_first,
          float* new_second) {
  const AdamStep s = step;
  const float kept = 1.0F - s.learning_rate * s.weight_decay;
  for (std::size_t i = 0; i < n; ++i) {
    const float m = s.beta1 * first[i] + (1.0F - s.beta1) * gradient[i];
    const float v = s.beta2 * second[i] + (1.0F - s.beta2) * (gradient[i] * gradient[i]);
    const float size = std::sqrt(v * s.correction2) + s.epsilon;
    new_first[i] = m;
    new_second[i] = v;
    new_parameters[i] = kept * parameters[i] - s.learning_rate * (m * s.correction1) / size;
  }
}

constexpr Kernels Table(const char* name) {
  return {name,     Multiply, AddBias,     SumRows,   Relu,          ReluBack, Gelu,
          GeluBack, Softmax,  SoftmaxBack, Normalise, NormaliseBack, Sgd,      Adam};
}

}  // namespace
}  // namespace muster::train
// NOLINTEND(misc-definitions-in-headers)

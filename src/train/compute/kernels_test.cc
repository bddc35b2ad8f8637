#include "train/compute/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "train/compute/testing.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> out;
  for (const auto& name : KernelLevels()) out.push_back(*KernelsFor(name));
  return out;
}

struct Case {
  std::size_t rows, depth, cols;
  bool a_transposed = false, b_transposed = false, add = false;
};

// From sizes that Eigen multiplies coefficient by coefficient to some that it cuts into blocks.
std::vector<Case> Cases() {
  std::vector<Case> out;
  for (const auto& [rows, depth, cols] : {std::array<std::size_t, 3>{1, 1, 1},
                                          {3, 5, 2},
                                          {1, 40, 17},
                                          {33, 40, 1},
                                          {37, 70, 51},
                                          {50, 600, 30}}) {
    for (const bool add : {false, true}) {
      out.push_back({rows, depth, cols, false, false, add});
      out.push_back({rows, depth, cols, true, false, add});
      out.push_back({rows, depth, cols, false, true, add});
    }
  }
  return out;
}

// Each matrix begins `shift` floats after a multiple of 64 bytes, and its rows are 3 floats longer
// than what is used of them.
std::vector<float> ProductOf(const Kernels& kernels, const Case& c, std::size_t shift) {
  const std::size_t a_rows = c.a_transposed ? c.depth : c.rows;
  const std::size_t a_cols = c.a_transposed ? c.rows : c.depth;
  const std::size_t b_rows = c.b_transposed ? c.cols : c.depth;
  const std::size_t b_cols = c.b_transposed ? c.depth : c.cols;
  Matrix a(1, shift + a_rows * (a_cols + 3)), b(1, shift + b_rows * (b_cols + 3));
  Matrix to(1, shift + c.rows * (c.cols + 3));
  FillRandom(1, a.values().subspan(shift));
  FillRandom(2, b.values().subspan(shift));
  FillRandom(3, to.values().subspan(shift));
  kernels.multiply({.rows = c.rows,
                    .depth = c.depth,
                    .cols = c.cols,
                    .a = a.data() + shift,
                    .a_stride = a_cols + 3,
                    .a_transposed = c.a_transposed,
                    .b = b.data() + shift,
                    .b_stride = b_cols + 3,
                    .b_transposed = c.b_transposed,
                    .to = to.data() + shift,
                    .to_stride = c.cols + 3,
                    .add = c.add});
  return Floats(to.values().subspan(shift));
}

// The same by three loops, in double.
std::vector<float> Expected(const Case& c) {
  const std::size_t a_stride = (c.a_transposed ? c.rows : c.depth) + 3;
  const std::size_t b_stride = (c.b_transposed ? c.depth : c.cols) + 3;
  std::vector<float> a((c.a_transposed ? c.depth : c.rows) * a_stride);
  std::vector<float> b((c.b_transposed ? c.cols : c.depth) * b_stride);
  std::vector<float> to(c.rows * (c.cols + 3));
  FillRandom(1, a);
  FillRandom(2, b);
  FillRandom(3, to);
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.cols; ++j) {
      float& out = to[i * (c.cols + 3) + j];
      double sum = c.add ? static_cast<double>(out) : 0;
      for (std::size_t k = 0; k < c.depth; ++k) {
        sum += static_cast<double>(c.a_transposed ? a[k * a_stride + i] : a[i * a_stride + k]) *
               static_cast<double>(c.b_transposed ? b[j * b_stride + k] : b[k * b_stride + j]);
      }
      out = static_cast<float>(sum);
    }
  }
  return to;
}

TEST(KernelsTest, ProductsAreRightOnEveryLevel) {
  for (const Kernels* kernels : AllKernels()) {
    for (const Case& c : Cases()) {
      const auto got = ProductOf(*kernels, c, 0);
      const auto expected = Expected(c);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], 1e-4F)
            << kernels->name << " " << c.rows << "x" << c.depth << "x" << c.cols << " at " << i;
      }
    }
  }
}

TEST(KernelsTest, ProductsHaveTheSameBitsAtAnyAddress) {
  for (const Kernels* kernels : AllKernels()) {
    for (const Case& c : Cases()) {
      const auto aligned = ProductOf(*kernels, c, 0);
      for (const std::size_t shift : {1U, 2U, 4U, 7U, 8U, 15U}) {
        ASSERT_EQ(ProductOf(*kernels, c, shift), aligned) << kernels->name << " " << shift;
      }
    }
  }
}

// Everything but products, one after another, on some rows.
std::vector<float> TheOthers(const Kernels& kernels, std::size_t cols, std::size_t shift) {
  constexpr std::size_t kRows = 5;
  const std::size_t n = kRows * cols;
  std::vector<float> out;
  std::vector<Matrix> memory;
  memory.reserve(32);
  const auto fresh = [&](std::uint64_t seed, std::size_t size) {
    memory.emplace_back(1, shift + size);
    FillRandom(seed, memory.back().values().subspan(shift));
    return memory.back().data() + shift;
  };
  const auto keep = [&](const float* from, std::size_t size) {
    out.insert(out.end(), from, from + size);
  };
  const float* x = fresh(1, n);
  const float* dy = fresh(2, n);
  float* y = fresh(3, n);
  float* dx = fresh(4, n);
  float* column = fresh(5, kRows);
  float* row = fresh(6, cols);
  kernels.gelu(n, x, y);
  keep(y, n);
  kernels.gelu_back(n, x, dy, dx);
  keep(dx, n);
  kernels.relu(n, x, y);
  keep(y, n);
  kernels.relu_back(n, x, dy, dx);
  keep(dx, n);
  kernels.add_bias(kRows, cols, row, y);
  keep(y, n);
  kernels.sum_rows(kRows, cols, x, row);
  keep(row, cols);
  kernels.normalise(kRows, cols, x, y, column);
  keep(y, n);
  keep(column, kRows);
  kernels.normalise_back(kRows, cols, y, column, dy, dx);
  keep(dx, n);
  const SoftmaxSum sum = kernels.softmax(cols - 1, cols, 3, y);
  keep(y, cols);
  out.push_back(sum.highest);
  out.push_back(sum.sum);
  kernels.softmax_back(cols - 1, cols, 3, y, dx);
  keep(dx, cols);
  float* first = fresh(7, n);
  float* second = fresh(1, n);
  kernels.relu(n, second, second);
  kernels.sgd(n, 0.1F, 0.9F, 0.01F, x, dy, first, y, first);
  keep(y, n);
  kernels.adam(n, {0.1F, 0.9F, 0.99F, 1e-8F, 0.01F, 2.0F, 3.0F}, x, dy, first, second, y, first,
               second);
  keep(y, n);
  keep(second, n);
  return out;
}

TEST(KernelsTest, AllButProductsHaveTheSameBitsOnEveryLevelAndAtAnyAddress) {
  for (const std::size_t cols : {2U, 7U, 16U, 50U, 131U}) {
    const auto base = TheOthers(**KernelsFor("base"), cols, 0);
    for (const Kernels* kernels : AllKernels()) {
      for (std::size_t shift = 0; shift < 16; shift += 3) {
        ASSERT_EQ(TheOthers(*kernels, cols, shift), base) << kernels->name << " " << shift;
      }
    }
  }
}

TEST(KernelsTest, ExponentialsAreNearThoseOfTheLibrary) {
  const Kernels& kernels = FastKernels();
  for (float x = -80; x < 0; x += 0.37F) {
    float row[2] = {x, 0};
    kernels.softmax(2, 2, 1, row);
    const double expected =
        std::exp(static_cast<double>(x)) / (1 + std::exp(static_cast<double>(x)));
    EXPECT_NEAR(static_cast<double>(row[0]) / expected, 1, 1e-6) << x;
  }
  for (float x = -6; x < 6; x += 0.11F) {
    float y = 0;
    kernels.gelu(1, &x, &y);
    const auto v = static_cast<double>(x);
    const double inner = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
    EXPECT_NEAR(static_cast<double>(y), v / 2 * (1 + std::tanh(inner)), 2e-6) << x;
  }
}

TEST(KernelsTest, WhatIsNotANumberStaysVisible) {
  float row[3] = {1, NAN, 2};
  FastKernels().softmax(3, 3, 1, row);
  EXPECT_TRUE(std::isnan(row[0]) && std::isnan(row[1]) && std::isnan(row[2]));
}

TEST(KernelsTest, ALevelThatIsNotThereIsNamed) {
  EXPECT_THAT(Describe(KernelsFor("neon").error()), HasSubstr("one of: auto, base"));
  EXPECT_EQ((*KernelsFor("auto"))->name, KernelLevels().back());
}

}  // namespace
}  // namespace muster::train

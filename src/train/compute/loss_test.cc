#include "train/compute/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/compute/testing.h"

namespace muster::train {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(LossTest, CrossEntropyOfEqualScoresIsTheLogarithmOfTheirNumber) {
  const Matrix output(2, 4);
  Matrix targets(2, 1);
  targets.values()[1] = 3;
  const Loss loss = LossOf(FastKernels(), LossKind::kCrossEntropy, output, targets, 2);
  EXPECT_NEAR(loss.mean(), std::log(4.0), 1e-6);
  EXPECT_EQ(loss.correct, 1);  // the first of equal scores counts as the highest
  EXPECT_THAT(loss.gradient.values(),
              Pointwise(FloatNear(1e-6F),
                        {-0.375F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, -0.375F}));
}

TEST(LossTest, CrossEntropyStaysFiniteFarFromTheTarget) {
  Matrix output(1, 2);
  output.values()[0] = 1000;
  Matrix targets(1, 1);
  targets.values()[0] = 1;
  EXPECT_NEAR(LossOf(FastKernels(), LossKind::kCrossEntropy, output, targets, 1).mean(), 1000,
              1e-3);
}

TEST(LossTest, SquaredErrorIsTheMeanOverColumnsAndRows) {
  Matrix output(2, 2);
  const Matrix targets(2, 2);
  output.values()[0] = 1;
  output.values()[3] = 3;
  const Loss loss = LossOf(FastKernels(), LossKind::kSquaredError, output, targets, 2);
  EXPECT_DOUBLE_EQ(loss.mean(), 2.5);
  EXPECT_THAT(loss.gradient.values(), Pointwise(FloatNear(0), {0.5F, 0.0F, 0.0F, 1.5F}));
}

// Two tokens for each sample: the mean is over four rows.
TEST(LossTest, GradientsOfShardsAreThoseOfTheWholeBatch) {
  const Matrix all = RandomMatrix(5, 4, 3);
  Matrix targets(2, 2);
  targets.values()[1] = 1;
  targets.values()[2] = 2;
  const Loss whole = LossOf(FastKernels(), LossKind::kCrossEntropy, all, targets, 2);
  double sum = 0;
  for (std::size_t shard = 0; shard < 2; ++shard) {
    Matrix output(2, 3), target(1, 2);
    std::ranges::copy(all.values().subspan(shard * 6, 6), output.values().begin());
    std::ranges::copy(targets.row(shard), target.values().begin());
    const Loss part = LossOf(FastKernels(), LossKind::kCrossEntropy, output, target, 2);
    EXPECT_EQ(Floats(part.gradient.values()),
              Floats(whole.gradient.values().subspan(shard * 6, 6)));
    sum += part.sum;
  }
  EXPECT_NEAR(sum / 4, whole.mean(), 1e-12);
}

}  // namespace
}  // namespace muster::train

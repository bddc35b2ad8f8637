#include "sim/pollux/mesh.h"

#include <gtest/gtest.h>

namespace muster::sim {
namespace {

double ValueAt(const Mesh& mesh, const std::vector<double>& values, const Mesh::Point& at) {
  const auto found = mesh.Find(at);
  double value = 0;
  for (std::size_t i = 0; i < 4; ++i) value += found.weights[i] * values[mesh.cell(found.cell)[i]];
  return value;
}

// A cube cut into five cells. A linear function is met everywhere inside.
class MeshTest : public ::testing::Test {
 protected:
  MeshTest() {
    for (double x : {1., 3.}) {
      for (double y : {1., 3.}) {
        for (double z : {1., 3.}) {
          points_.push_back({x, y, z});
          values_.push_back(x + 10 * y + 100 * z);
        }
      }
    }
  }
  std::vector<Mesh::Point> points_;
  std::vector<double> values_;
  const std::vector<Mesh::Cell> cells_ = {
      {0, 1, 2, 4}, {3, 1, 2, 7}, {5, 1, 4, 7}, {6, 2, 4, 7}, {1, 2, 4, 7}};
};

TEST_F(MeshTest, InsideItIsLinear) {
  const Mesh mesh(points_, cells_);
  for (const Mesh::Point& at :
       {Mesh::Point{1, 1, 1}, {2, 2, 2}, {1.1, 1.2, 1.3}, {2.9, 2.8, 2.7}, {1, 3, 2}, {3, 3, 3}}) {
    EXPECT_NEAR(ValueAt(mesh, values_, at), at[0] + 10 * at[1] + 100 * at[2], 1e-9)
        << at[0] << " " << at[1] << " " << at[2];
  }
}

TEST_F(MeshTest, OutsideItStaysWithinWhatWasMeasured) {
  const Mesh mesh(points_, cells_);
  EXPECT_NEAR(ValueAt(mesh, values_, {9, 9, 9}), 333, 1e-9);
  EXPECT_NEAR(ValueAt(mesh, values_, {0, 0, 0}), 111, 1e-9);
}

TEST_F(MeshTest, AFlatCellHoldsNothing) {
  auto cells = cells_;
  cells.insert(cells.begin() + 1, Mesh::Cell{0, 1, 2, 3});  // one side of the cube
  const Mesh mesh(points_, cells);
  EXPECT_NEAR(ValueAt(mesh, values_, {1, 2, 2}), 221, 1e-9);
  EXPECT_NEAR(ValueAt(mesh, values_, {2, 2, 2}), 222, 1e-9);
}

}  // namespace
}  // namespace muster::sim

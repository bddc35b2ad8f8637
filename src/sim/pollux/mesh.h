// Mesh: values between measured points of three coordinates, linear inside of tetrahedra.
//
// On a grid many points lie on one sphere, so the tetrahedra of a Delaunay mesh are not unique,
// some are flat, and a point may lie in several that give it different values. Published results
// depend on which is taken, so the search walks as SciPy's does, which made them: uphill over the
// cells' planes on the lifted paraboloid from the first cell, then towards the point, and through
// all cells in order where a flat one is in the way.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace muster::sim {

class Mesh {
 public:
  using Point = std::array<double, 3>;
  using Cell = std::array<std::size_t, 4>;  // indices of its corners
  using Weights = std::array<double, 4>;

  Mesh() = default;
  // Cells in the order in which they were made: flat ones stand beside those they were cut from.
  Mesh(std::vector<Point> points, std::vector<Cell> cells);

  struct Found {
    std::size_t cell = 0;
    Weights weights{};  // of the cell's corners
  };
  // Whether there is a cell that is not flat, without which no point is found.
  bool Holds() const;
  // A point outside takes the cell that it misses least, held to it.
  Found Find(const Point& at) const;
  const Cell& cell(std::size_t index) const { return cells_[index]; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  using Plane = std::array<double, 5>;  // of a cell on the lifted paraboloid, with its offset

  void Link();
  void LayPlanes();
  double Lift(const Point& at) const;
  double Above(std::size_t cell, const Point& at) const;
  Weights WeightsIn(std::size_t cell, const Point& at) const;
  std::size_t Climb(const Point& at) const;
  std::size_t Walk(const Point& at) const;
  std::size_t SearchAll(const Point& at) const;
  Found Nearest(const Point& at) const;

  std::vector<Point> points_;
  std::vector<Cell> cells_;
  std::vector<std::array<std::size_t, 4>> neighbours_;  // opposite each corner; kNone: outside
  std::vector<std::array<Point, 3>> inverse_;           // of the edges to the last corner
  std::vector<char> flat_;
  std::vector<Plane> planes_;
  double scale_ = 0, shift_ = 0;  // of the paraboloid
};

}  // namespace muster::sim

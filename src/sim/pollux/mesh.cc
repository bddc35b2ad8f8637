#include "sim/pollux/mesh.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace muster::sim {
namespace {

constexpr double kRounding = std::numeric_limits<double>::epsilon();
constexpr double kSlack = 100 * kRounding;
const double kWideSlack = std::sqrt(kRounding);  // towards a flat cell
constexpr double kFlat = 1e-9;                   // coordinates are whole numbers
constexpr double kOnPlane = 1e-7;

using Point = Mesh::Point;

Point Minus(const Point& a, const Point& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

Point Cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

double Dot(const Point& a, const Point& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

bool Within(double weight, double below) { return weight >= -below && weight <= 1 + kSlack; }

}  // namespace

Mesh::Mesh(std::vector<Point> points, std::vector<Cell> cells)
    : points_(std::move(points)), cells_(std::move(cells)) {
  Link();
  LayPlanes();
}

void Mesh::Link() {
  neighbours_.assign(cells_.size(), {kNone, kNone, kNone, kNone});
  std::map<std::array<std::size_t, 3>, std::pair<std::size_t, std::size_t>> open;
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    for (std::size_t corner = 0; corner < 4; ++corner) {
      std::array<std::size_t, 3> face{};
      for (std::size_t i = 0, to = 0; i < 4; ++i) {
        if (i != corner) face[to++] = cells_[cell][i];
      }
      std::ranges::sort(face);
      const auto [found, fresh] = open.try_emplace(face, cell, corner);
      if (fresh) continue;
      const auto [other, its_corner] = found->second;
      neighbours_[cell][corner] = other;
      neighbours_[other][its_corner] = cell;
    }
  }
}

// The paraboloid is scaled as Qhull does it, with its point at infinity a tenth above the highest.
void Mesh::LayPlanes() {
  double least = std::numeric_limits<double>::infinity(), most = 0, widest = 0;
  for (const auto& point : points_) {
    least = std::min(least, Dot(point, point));
    most = std::max(most, Dot(point, point));
    for (const double coordinate : point) widest = std::max(widest, std::abs(coordinate));
  }
  scale_ = widest / (1.1 * most - least);
  shift_ = -least * scale_;

  inverse_.resize(cells_.size());
  planes_.resize(cells_.size());
  flat_.assign(cells_.size(), 0);
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    const auto& corners = cells_[cell];
    const auto& origin = points_[corners[3]];
    const Point a = Minus(points_[corners[0]], origin), b = Minus(points_[corners[1]], origin),
                c = Minus(points_[corners[2]], origin);
    const Point rows[3] = {Cross(b, c), Cross(c, a), Cross(a, b)};
    const double volume = Dot(a, rows[0]);
    flat_[cell] = std::abs(volume) < kFlat ? 1 : 0;
    if (flat_[cell] != 0) continue;
    Point slope{};
    for (std::size_t i = 0; i < 3; ++i) {
      const double rise = Lift(points_[corners[i]]) - Lift(origin);
      for (std::size_t j = 0; j < 3; ++j) {
        inverse_[cell][i][j] = rows[i][j] / volume;
        slope[j] += rise * inverse_[cell][i][j];
      }
    }
    const double length = std::sqrt(Dot(slope, slope) + 1);
    planes_[cell] = {slope[0] / length, slope[1] / length, slope[2] / length, -1 / length,
                     (Lift(origin) - Dot(slope, origin)) / length};
  }

  // A flat cell has the plane of the piece it was cut from: that of the neighbour made nearest to
  // it whose plane it lies in.
  std::vector<char> known(cells_.size());
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) known[cell] = flat_[cell] == 0 ? 1 : 0;
  for (bool strict : {true, false}) {
    for (bool found = true; found;) {
      found = false;
      std::vector<std::pair<std::size_t, std::size_t>> taken;
      for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
        if (known[cell] != 0) continue;
        std::size_t best = kNone, distance = kNone;
        for (const auto other : neighbours_[cell]) {
          if (other == kNone || known[other] == 0) continue;
          const bool holds = std::ranges::all_of(cells_[cell], [&](std::size_t corner) {
            return std::abs(Above(other, points_[corner])) < kOnPlane;
          });
          const std::size_t far = other > cell ? other - cell : cell - other;
          if ((holds || !strict) && far < distance) {
            best = other;
            distance = far;
          }
        }
        if (best != kNone) taken.emplace_back(cell, best);
      }
      for (const auto& [cell, other] : taken) {
        planes_[cell] = planes_[other];
        known[cell] = 1;
        found = true;
      }
    }
  }
}

bool Mesh::Holds() const {
  return std::ranges::any_of(flat_, [](char flat) { return flat == 0; });
}

double Mesh::Lift(const Point& at) const { return scale_ * Dot(at, at) + shift_; }

double Mesh::Above(std::size_t cell, const Point& at) const {
  const auto& plane = planes_[cell];
  return plane[0] * at[0] + plane[1] * at[1] + plane[2] * at[2] + plane[3] * Lift(at) + plane[4];
}

Mesh::Weights Mesh::WeightsIn(std::size_t cell, const Point& at) const {
  const Point to = Minus(at, points_[cells_[cell][3]]);
  Weights weights{};
  for (std::size_t i = 0; i < 3; ++i) weights[i] = Dot(inverse_[cell][i], to);
  weights[3] = 1 - weights[0] - weights[1] - weights[2];
  return weights;
}

std::size_t Mesh::Climb(const Point& at) const {
  std::size_t cell = 0;
  double best = Above(cell, at);
  for (bool changed = true; changed && best <= 0;) {
    changed = false;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t other = neighbours_[cell][k];
      if (other == kNone) continue;
      const double above = Above(other, at);
      if (above <= best + kSlack * (1 + std::abs(best))) continue;
      cell = other;  // and on with its next neighbour
      best = above;
      changed = true;
    }
  }
  return cell;
}

std::size_t Mesh::Walk(const Point& at) const {
  std::size_t cell = Climb(at);
  for (std::size_t step = 0; step < 1 + cells_.size() / 4; ++step) {
    if (flat_[cell] != 0) return SearchAll(at);
    const auto weights = WeightsIn(cell, at);
    const auto out = std::ranges::find_if(weights, [](double w) { return w < -kSlack; });
    if (out == weights.end()) {
      const bool inside = std::ranges::all_of(weights, [](double w) { return w <= 1 + kSlack; });
      return inside ? cell : SearchAll(at);
    }
    cell = neighbours_[cell][static_cast<std::size_t>(out - weights.begin())];
    if (cell == kNone) return kNone;
  }
  return SearchAll(at);
}

std::size_t Mesh::SearchAll(const Point& at) const {
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    if (flat_[cell] == 0) {
      const auto weights = WeightsIn(cell, at);
      if (std::ranges::all_of(weights, [](double w) { return Within(w, kSlack); })) return cell;
      continue;
    }
    for (const auto other : neighbours_[cell]) {
      if (other == kNone || flat_[other] != 0) continue;
      const auto weights = WeightsIn(other, at);
      bool inside = true;
      for (std::size_t k = 0; k < 4; ++k) {
        inside = inside && Within(weights[k], neighbours_[other][k] == cell ? kWideSlack : kSlack);
      }
      if (inside) return other;
    }
  }
  return kNone;
}

Mesh::Found Mesh::Nearest(const Point& at) const {
  Found found;
  double worst = -std::numeric_limits<double>::infinity();
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    if (flat_[cell] != 0) continue;
    const auto weights = WeightsIn(cell, at);
    const double least = *std::ranges::min_element(weights);
    if (least <= worst) continue;
    worst = least;
    found = {cell, weights};
  }
  double sum = 0;
  for (auto& weight : found.weights) sum += weight = std::max(weight, 0.0);
  for (auto& weight : found.weights) weight /= sum;
  return found;
}

Mesh::Found Mesh::Find(const Point& at) const {
  const std::size_t cell = Walk(at);
  if (cell == kNone) return Nearest(at);
  return {cell, WeightsIn(cell, at)};
}

}  // namespace muster::sim

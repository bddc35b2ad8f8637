#include "train/run/stage_cut.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace muster::train {
namespace {

// Each stage takes what it can below the bound and leaves a layer for each of the rest. The last
// one takes all there is: the bound holds for it too if it can be held.
std::vector<LayerRange> Fill(std::span<const std::uint64_t> costs, int stages,
                             std::uint64_t bound) {
  std::vector<LayerRange> out;
  const int layers = static_cast<int>(costs.size());
  int first = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const int most = layers - (stages - stage - 1);
    int last = first + 1;
    std::uint64_t sum = costs[static_cast<std::size_t>(first)];
    while (last < most) {
      sum += costs[static_cast<std::size_t>(last)];
      if (sum > bound && stage + 1 < stages) break;
      ++last;
    }
    out.push_back({first, last});
    first = last;
  }
  return out;
}

std::uint64_t Dearest(std::span<const std::uint64_t> costs, const std::vector<LayerRange>& cut) {
  std::uint64_t out = 0;
  for (const auto& range : cut) {
    out = std::max(out, std::accumulate(costs.begin() + range.first, costs.begin() + range.last,
                                        std::uint64_t{0}));
  }
  return out;
}

}  // namespace

std::vector<std::uint64_t> LayerCosts(const Model& model) {
  std::vector<std::uint64_t> out;
  Shape shape{1, model.input_cols()};
  for (int i = 0; i < model.layers(); ++i) {
    out.push_back(model.layer(i).Cost(shape));
    shape = model.layer(i).OutputShape(shape);
  }
  return out;
}

std::vector<LayerRange> CutByCost(std::span<const std::uint64_t> costs, int stages) {
  const bool fits = stages >= 1 && static_cast<std::size_t>(stages) <= costs.size();
  MUSTER_CHECK(fits, "there is a layer for each stage");
  // The least bound that can be held.
  std::uint64_t low = 0;
  std::uint64_t high = std::accumulate(costs.begin(), costs.end(), std::uint64_t{0});
  while (low < high) {
    const std::uint64_t bound = low + (high - low) / 2;
    if (Dearest(costs, Fill(costs, stages, bound)) <= bound) {
      high = bound;
    } else {
      low = bound + 1;
    }
  }
  return Fill(costs, stages, low);
}

}  // namespace muster::train

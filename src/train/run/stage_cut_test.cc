#include "train/run/stage_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "train/compute/testing.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;

std::uint64_t Dearest(const std::vector<std::uint64_t>& costs, const std::vector<LayerRange>& cut) {
  std::uint64_t out = 0;
  for (const auto& range : cut) {
    out = std::max(out, std::accumulate(costs.begin() + range.first, costs.begin() + range.last,
                                        std::uint64_t{0}));
  }
  return out;
}

// Of all cuts into so many stages, by trying every one.
std::uint64_t Best(const std::vector<std::uint64_t>& costs, int first, int stages) {
  const int layers = static_cast<int>(costs.size());
  if (stages == 1) return Dearest(costs, {{first, layers}});
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  for (int last = first + 1; last <= layers - stages + 1; ++last) {
    best = std::min(best, std::max(Dearest(costs, {{first, last}}), Best(costs, last, stages - 1)));
  }
  return best;
}

TEST(StageCutTest, TheDearestStageIsAsCheapAsItCanBe) {
  std::uint64_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> costs(static_cast<std::size_t>(1 + round % 9));
    for (auto& cost : costs) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      cost = (state >> 33U) % 20;
    }
    for (int stages = 1; stages <= static_cast<int>(costs.size()); ++stages) {
      const auto cut = CutByCost(costs, stages);
      ASSERT_EQ(static_cast<int>(cut.size()), stages);
      int at = 0;
      for (const auto& range : cut) {
        EXPECT_EQ(range.first, at);
        EXPECT_LT(range.first, range.last);
        at = range.last;
      }
      EXPECT_EQ(at, static_cast<int>(costs.size()));
      EXPECT_EQ(Dearest(costs, cut), Best(costs, 0, stages));
    }
  }
}

TEST(StageCutTest, ADearLayerHasAStageToItself) {
  const std::vector<std::uint64_t> costs{1, 1, 1, 10, 1, 1};
  EXPECT_THAT(CutByCost(costs, 3),
              ElementsAre(LayerRange{0, 3}, LayerRange{3, 4}, LayerRange{4, 6}));
}

TEST(StageCutTest, LayersCostWhatTheyCompute) {
  const auto costs = [](const char* text) {
    return LayerCosts(Model(*ParseModel(text), FastKernels()));
  };
  // A row goes through every weight; an activation costs its output.
  EXPECT_THAT(costs("mlp:64,32,10"), ElementsAre(65 * 32 + 32, 32, 33 * 10 + 10));
  const auto decoder = costs("transformer:layers=1,width=16,heads=4,context=8,vocab=2000");
  // Looking tokens up is cheap, however many there are; telling them apart is not.
  EXPECT_LT(decoder.front(), decoder[1]);
  EXPECT_EQ(std::ranges::max(decoder), decoder.back());
  // Slices cost what the whole costs.
  EXPECT_EQ(costs("transformer:layers=1,width=16,heads=4,context=8,vocab=2000,slices=2"), decoder);
  const auto conv = costs("conv:digits");
  EXPECT_GT(conv[0], 8U * 8U * 9U);  // every point
}

}  // namespace
}  // namespace muster::train

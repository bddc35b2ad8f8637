// The same input gives the same plans, whatever compiled the engine.
#include <gtest/gtest.h>

#include "generators.h"
#include "speeds.h"
#include "world.h"

namespace muster::properties {
namespace {

constexpr std::uint64_t kGoldenHash = 12416081460664745096ULL;
constexpr std::uint64_t kGoldenHashOfSizes = 17675711311910697796ULL;
constexpr std::uint64_t kGoldenSeed = 1;
constexpr int kGoldenScenes = 12;

// FNV-1a, 64 bits.
class Hash {
 public:
  void Add(const std::string& text) {
    for (const char c : text) {
      value_ ^= static_cast<unsigned char>(c);
      value_ *= 0x100000001B3ULL;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325ULL;
};

// Of the plans of a fixed run, and of the cluster after each scene.
std::uint64_t HashOfPlans(World::Change change, void (*before_cycle)(World&)) {
  Random random(kGoldenSeed);
  Hash hash;
  std::size_t actions = 0;
  for (int i = 0; i < kGoldenScenes; ++i) {
    const Scene scene = DrawScene(random, {6, 6, 60});
    World world(scene, change);
    for (const auto& event : scene.events) {
      world.Apply(event);
      if (event.quiet == 5) continue;
      if (before_cycle != nullptr) before_cycle(world);
      const auto plan = world.Cycle(event.slow);
      actions += plan.actions.size();
      hash.Add(Describe(plan, world.cluster()));
      hash.Add("\n");
    }
    hash.Add(world.cluster().Dump());
  }
  EXPECT_GT(actions, 300U) << "the run decides too little to prove anything";
  return hash.value();
}

TEST(Golden, PlansOfAFixedRunHaveTheHashInTheTree) {
  EXPECT_EQ(HashOfPlans(nullptr, nullptr), kGoldenHash)
      << "if the rules were meant to change: kGoldenHash, the same with gcc and clang";
}

// Goodput is in floating point.
TEST(Golden, PlansByReportedSpeedsHaveTheHashInTheTree) {
  EXPECT_EQ(HashOfPlans(Eager, ReportSpeeds), kGoldenHashOfSizes)
      << "if the rules were meant to change: kGoldenHashOfSizes, the same with gcc and clang";
}

TEST(Golden, TheSameSceneTwiceGivesTheSamePlans) {
  Random random(kGoldenSeed + 1);
  const Scene scene = DrawScene(random, {6, 6, 60});
  World one(scene), two(scene);
  for (const auto& event : scene.events) {
    one.Apply(event);
    two.Apply(event);
    EXPECT_EQ(Describe(one.Cycle(event.slow), one.cluster()),
              Describe(two.Cycle(event.slow), two.cluster()));
  }
  EXPECT_EQ(one.cluster().Dump(), two.cluster().Dump());
}

}  // namespace
}  // namespace muster::properties

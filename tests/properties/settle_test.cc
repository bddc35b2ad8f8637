// A cluster that is left alone comes to rest.
#include <gtest/gtest.h>

#include "generators.h"
#include "world.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 1000;
constexpr int kCycles = 50;
constexpr int kQuietCycles = 5;

// Nobody's expected end passes: what is reserved moves then, and others may begin.
engine::Policy Endless(engine::Policy policy) {
  policy.assumed_runtime_ms = 3650LL * 24 * 3'600'000;
  return policy;
}

void ComesToRest(std::int64_t step_ms) {
  CheckScenes(kScenes, [step_ms] {
    const Scene scene = *AnyScene({});
    World world(scene, Endless);
    for (const auto& event : scene.events) {
      world.Apply(event);
      if (event.quiet < 5) world.Cycle(event.slow);
    }
    world.Cycle(0);  // from here on a broken gang's grace runs
    std::string story;
    const auto look = [&](const model::Plan& plan) {
      story += "-- cycle\n" + Describe(plan, world.cluster());
    };
    const int cycles = world.Settle(kCycles, step_ms, look);
    if (cycles < 0)
      RC_LOG() << story.substr(story.size() - std::min<std::size_t>(4000, story.size()));
    RC_ASSERT(cycles >= 0);
    for (int i = 0; i < kQuietCycles; ++i) {
      const int again = world.Settle(1, step_ms, look);
      if (again < 0) RC_LOG() << story;
      RC_ASSERT(again == 0);
    }
  });
}

TEST(SettledCluster, YieldsAnEmptyPlanWhileTheClockStands) { ComesToRest(0); }

// Delays, minimum run times and graces are all shorter than the step.
TEST(SettledCluster, YieldsAnEmptyPlanWhileTimePasses) { ComesToRest(600'000); }

}  // namespace
}  // namespace muster::properties

// Nobody is asked to leave in vain.
#include <gtest/gtest.h>

#include "generators.h"
#include "minimal.h"
#include "world.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 2000;

TEST(Victims, AreAllNeededByTheOneTheyLeaveFor) {
  CheckScenes(kScenes, [] {
    const Scene scene = *AnyScene({3, 4, 25});
    World world(scene);
    for (const auto& event : scene.events) {
      world.Apply(event);
      if (event.quiet == 5) continue;
      world.LetAllLeave();
      const auto before = world.Snapshot();
      const auto plan = world.Cycle(0);
      if (!IsOneClaim(plan)) continue;
      const auto wrong = DroppableVictim(before, world, plan);
      if (!wrong.empty()) RC_LOG() << "the plan was\n" << Describe(plan, world.cluster());
      RC_ASSERT(wrong == "");
    }
  });
}

}  // namespace
}  // namespace muster::properties

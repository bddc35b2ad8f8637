// What every cycle must respect, whatever happened before it, and however wrong the run times are
// that it believes in.
#include <gtest/gtest.h>

#include <functional>

#include "generators.h"
#include "inspect.h"
#include "speeds.h"
#include "world.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 1000;

using Check = std::function<std::string(const World&, const model::Plan&)>;

// Plays random scenes; after each cycle the check must find nothing wrong.
void HoldsAfterEveryCycle(const Check& check) {
  CheckScenes(kScenes, [&check] {
    const Scene scene = *AnyScene({});
    World world(scene);
    const auto run = [&](int slow) {
      const auto plan = world.Cycle(slow);
      const auto wrong = check(world, plan);
      if (!wrong.empty()) RC_LOG() << "the plan was\n" << Describe(plan, world.cluster());
      RC_ASSERT(wrong == "");
    };
    for (const auto& event : scene.events) {
      world.Apply(event);
      GuessRunTimes(world);
      if (event.quiet < 5) run(event.slow);
    }
    for (int i = 0; i < 3; ++i) run(0);
  });
}

TEST(EveryCycle, OversubscribesNoDeviceAndNoNode) {
  HoldsAfterEveryCycle(
      [](const World& world, const model::Plan&) { return Oversubscribed(world); });
}

TEST(EveryCycle, StartsWorkersOnlyWhereTheyMayRun) { HoldsAfterEveryCycle(Misplaced); }

TEST(EveryCycle, StartsGangsWholeOrNotAtAll) { HoldsAfterEveryCycle(BrokenGang); }

TEST(EveryCycle, KeepsLimitsAtEveryLevel) { HoldsAfterEveryCycle(AboveLimit); }

TEST(EveryCycle, StartsFixedWorkInsideItsQuotaOnly) { HoldsAfterEveryCycle(AboveFixedQuota); }

TEST(EveryCycle, NeverStopsWorkThatIsNotPreemptible) { HoldsAfterEveryCycle(ForbiddenEviction); }

TEST(EveryCycle, PreemptsInsideAQueueAndReclaimsBetweenQueues) {
  HoldsAfterEveryCycle(TakenFromTheWrongQueue);
}

TEST(EveryCycle, PromisesOnlyRoomThatIsStillBeingLeft) {
  HoldsAfterEveryCycle([](const World& world, const model::Plan& plan) -> std::string {
    for (const auto& fact : world.jobs()) {
      if (world.cluster().job(world.cluster().FindJob(fact.spec.name)).leaving > 0) return "";
    }
    return plan.promises.empty() ? "" : "a promise, and nobody is leaving";
  });
}

}  // namespace
}  // namespace muster::properties

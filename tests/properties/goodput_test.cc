// What every cycle must respect where jobs report their speed, on two GPU types.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "generators.h"
#include "inspect.h"
#include "speeds.h"
#include "world.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 500;
constexpr int kCycles = 60;
constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kLongMs = 30LL * 24 * 3'600'000;

using Check = std::function<std::string(const World&, const model::Plan&)>;

void HoldsAfterEveryCycle(const Check& check) {
  CheckScenes(kScenes, [&check] {
    const Scene scene = *AnyScene({});
    World world(scene, Eager);
    const auto run = [&](int slow) {
      const auto plan = world.Cycle(slow);
      const auto wrong = check(world, plan);
      if (!wrong.empty()) RC_LOG() << "the plan was\n" << Describe(plan, world.cluster());
      RC_ASSERT(wrong == "");
    };
    for (const auto& event : scene.events) {
      world.Apply(event);
      ReportSpeeds(world);
      GuessRunTimes(world);
      if (event.quiet < 5) run(event.slow);
    }
    for (int i = 0; i < 3; ++i) run(0);
  });
}

TEST(SizesByGoodput, OversubscribeNoDeviceAndNoNode) {
  HoldsAfterEveryCycle(
      [](const World& world, const model::Plan&) { return Oversubscribed(world); });
}

TEST(SizesByGoodput, StartWorkersOnlyWhereTheyMayRun) { HoldsAfterEveryCycle(Misplaced); }

TEST(SizesByGoodput, StartGangsWholeOrNotAtAll) { HoldsAfterEveryCycle(BrokenGang); }

TEST(SizesByGoodput, KeepLimitsAtEveryLevel) { HoldsAfterEveryCycle(AboveLimit); }

TEST(SizesByGoodput, NeverStopWorkThatIsNotPreemptible) { HoldsAfterEveryCycle(ForbiddenEviction); }

// Who leaves for a better size is left its minimum, or is promised it elsewhere.
TEST(SizesByGoodput, KeepJobsBetweenTheirMinimumAndTheirMaximum) {
  HoldsAfterEveryCycle([](const World& world, const model::Plan& plan) -> std::string {
    const auto& cluster = world.cluster();
    for (const auto& action : plan.actions) {
      const auto& job = cluster.job(action.job);
      if (action.rule != model::Rule::kResize || action.kind != model::ActionKind::kShrink)
        continue;
      const auto moved = std::ranges::count_if(plan.actions, [&](const auto& other) {
        return other.job == action.job && other.kind == model::ActionKind::kMove;
      });
      const auto promised = std::ranges::count(plan.promises, action.job, &model::Promise::job);
      if (job.active + moved + promised < job.groups[0].minimum) {
        return "job " + job.name + " was shrunk below its minimum";
      }
    }
    for (const auto& fact : world.jobs()) {
      const auto& job = cluster.job(cluster.FindJob(fact.spec.name));
      if (job.target != engine::kNone && job.target > job.workers.size()) {
        return "job " + job.name + " is to have more than its maximum";
      }
    }
    return "";
  });
}

// After a long time a change costs nothing any more, so that only what is better counts.
TEST(SizesByGoodput, ComeToRestWhileReportsStayTheSame) {
  CheckScenes(kScenes, [] {
    const Scene scene = *AnyScene({});
    World world(scene, Eager);
    for (const auto& event : scene.events) {
      world.Apply(event);
      ReportSpeeds(world);
      if (event.quiet < 5) world.Cycle(event.slow);
    }
    std::string story;
    const auto look = [&](const model::Plan& plan) {
      story += "-- cycle\n" + Describe(plan, world.cluster());
    };
    if (world.Settle(kCycles, kLongMs, look) < 0) {
      RC_LOG() << story.substr(story.size() - std::min<std::size_t>(4000, story.size()));
      RC_FAIL("it does not come to rest");
    }
    for (int round = 0; round < 10; ++round) {
      ReportSpeeds(world);
      if (world.Settle(kCycles, kMinuteMs, look) == 0) return;
    }
    RC_LOG() << story.substr(story.size() - std::min<std::size_t>(4000, story.size()));
    RC_FAIL("sizes change for ever");
  });
}

}  // namespace
}  // namespace muster::properties

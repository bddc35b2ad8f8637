// What every cycle must respect where jobs report their speed, on two GPU types.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "generators.h"
#include "inspect.h"
#include "world.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 500;
constexpr int kCycles = 60;
constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kLongMs = 30LL * 24 * 3'600'000;

// Sizes are given out in every cycle in which something is new, and nobody takes turns.
engine::Policy Eager(engine::Policy policy) {
  policy.by_goodput = true;
  policy.resize_every_ms = 0;
  policy.turn_gpu_ms = INT64_MAX / 4;
  return policy;
}

// A number of the job's own, the same whenever it is asked for.
std::uint32_t Lot(const std::string& name, std::uint32_t what) {
  std::uint32_t value = 2'166'136'261U + what;
  for (const char letter : name) {
    value = (value ^ static_cast<unsigned char>(letter)) * 16'777'619U;
  }
  return value >> 8;
}

// Three jobs of four report: on one type, the other, or both, how fast they are.
void Report(World& world) {
  constexpr std::array<double, 3> kSync = {0.01, 1, 100};
  for (const auto& fact : world.jobs()) {
    const auto& name = fact.spec.name;
    const auto measured = Lot(name, 0) % 4;
    if (measured == 0) continue;
    engine::JobSpeed::Models models;
    for (std::uint32_t type = 0; type < 2; ++type) {
      if ((measured & (1U << type)) == 0) continue;
      engine::GoodputModel model;
      model.steps.compute_b = 1.0 / (1 + Lot(name, 1 + type) % 3);
      model.steps.within_a = kSync[Lot(name, 3) % 3];
      model.steps.across_a = kSync[Lot(name, 4) % 3];
      model.grad_var = 1e6;
      model.limits = {1, 1024, 1, 1};
      models[type == 0 ? "A" : "B"] = model;
    }
    world.cluster().ReportSpeed(world.cluster().FindJob(name),
                                {models, 1 + static_cast<int>(Lot(name, 5) % 8)});
  }
}

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
      Report(world);
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
      Report(world);
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
      Report(world);
      if (world.Settle(kCycles, kMinuteMs, look) == 0) return;
    }
    RC_LOG() << story.substr(story.size() - std::min<std::size_t>(4000, story.size()));
    RC_FAIL("sizes change for ever");
  });
}

}  // namespace
}  // namespace muster::properties

// Who asks for what it was promised gets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "generators.h"
#include "world.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 2000;
constexpr int kCycles = 50;

// Cuts the quotas of the leaves so that together they fit, and gives parents the sum of theirs.
void FitQuotas(Scene& scene) {
  int left = 0;
  for (std::size_t i = 0; i < scene.nodes.size(); ++i) {
    left += static_cast<int>(MakeNode(scene.nodes[i], i).gpus.size());
  }
  const auto queues = MakeQueues(scene.queues);
  const auto leaves = Leaves(queues);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const bool leaf = std::find(leaves.begin(), leaves.end(), queues[i].name) != leaves.end();
    scene.queues[i].quota = leaf ? std::min(scene.queues[i].quota, left) : 0;
    left -= scene.queues[i].quota;
  }
  for (std::size_t i = queues.size(); i-- > 0;) {
    for (std::size_t p = 0; p < i; ++p) {
      if (queues[p].name == queues[i].parent) scene.queues[p].quota += scene.queues[i].quota;
    }
  }
}

TEST(Quota, IsReachedByEveryQueueThatAsksForIt) {
  CheckScenes(kScenes, [] {
    Scene scene = *AnyQuotaScene();
    FitQuotas(scene);
    World world(scene);
    for (const auto& event : scene.events) {
      world.Apply(event);
      world.Cycle(event.slow);
    }
    std::string story;
    world.Settle(kCycles, 1000, [&](const model::Plan& plan) {
      story += "-- cycle\n" + Describe(plan, world.cluster());
    });
    std::map<std::string, std::int64_t> asked, held;
    for (const auto& fact : world.jobs()) {
      const auto& job = world.cluster().job(world.cluster().FindJob(fact.spec.name));
      asked[fact.spec.queue] += kMilli;
      if (job.workers[0].place.Holds()) held[fact.spec.queue] += kMilli;
    }
    for (const auto& queue : MakeQueues(scene.queues)) {
      const auto promised = std::min(queue.quota.at("gpus"), asked[queue.name]);
      if (held[queue.name] < promised) RC_LOG() << queue.name << "\n" << story;
      RC_ASSERT(held[queue.name] >= promised);
    }
  });
}

}  // namespace
}  // namespace muster::properties

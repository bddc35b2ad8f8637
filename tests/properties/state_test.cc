// The state of the cluster: the same from scratch, the same after a trial was given up.
#include <gtest/gtest.h>

#include <bit>

#include "engine/placement.h"
#include "generators.h"
#include "rebuilt.h"
#include "world.h"

namespace muster::properties {
namespace {

using engine::Mode;
using engine::Place;
using engine::WorkerRef;
using engine::WorkerState;

constexpr int kScenes = 500;

void Play(const Scene& scene, World& world) {
  for (const auto& event : scene.events) {
    world.Apply(event);
    if (event.quiet < 5) world.Cycle(event.slow);
  }
}

// Places what waits, tells some of those who run to leave, and so on, as a search would.
void Meddle(World& world, Random& random) {
  auto& cluster = world.cluster();
  engine::Placement placement(cluster);
  std::vector<engine::Piece> pieces;
  for (int i = 0; i < 12; ++i) {
    if (world.jobs().empty()) return;
    const auto pick = random.Between(0, static_cast<std::int64_t>(world.jobs().size()) - 1);
    const auto& name = world.jobs()[static_cast<std::size_t>(pick)].spec.name;
    const auto job = cluster.FindJob(name);
    const auto workers = cluster.job(job).workers.size();
    const WorkerRef ref{
        job, static_cast<std::uint32_t>(random.Between(0, static_cast<std::int64_t>(workers) - 1))};
    const Place place = cluster.worker(ref).place;
    if (random.Chance(50)) {
      placement.NextPieces(job, pieces);
      const auto mode = random.Chance(50) ? Mode::kFree : Mode::kFuture;
      for (const auto& piece : pieces) placement.Place(piece, mode);
    } else if (place.state == WorkerState::kRunning && !place.fresh) {
      Place to;
      to.left_bank = place.bank;
      to.left_devices = place.devices;
      cluster.Move(ref, to);
      if (random.Chance(50)) placement.Rehouse(engine::kNone, {ref});
    } else if (place.state == WorkerState::kRunning) {
      cluster.Move(ref, Place{});
    }
  }
}

TEST(State, KeptStepByStepEqualsStateBuiltFromTheFacts) {
  CheckScenes(kScenes, [] {
    const Scene scene = *AnyScene({});
    World world(scene);
    for (const auto& event : scene.events) {
      world.Apply(event);
      RC_ASSERT(DiffersFromRebuilt(world) == "");
      if (event.quiet == 5) continue;
      world.Cycle(event.slow);
      RC_ASSERT(DiffersFromRebuilt(world) == "");
    }
  });
}

TEST(State, IsRestoredByARollbackToTheLastByte) {
  CheckScenes(kScenes, [] {
    const Scene scene = *AnyScene({});
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    World world(scene);
    Play(scene, world);
    const auto before = world.cluster().Dump();
    const auto mark = world.cluster().mark();
    Meddle(world, random);
    const auto between = world.cluster().Dump();
    const auto inner = world.cluster().mark();
    Meddle(world, random);
    world.cluster().RollbackTo(inner);
    RC_ASSERT(world.cluster().Dump() == between);
    world.cluster().RollbackTo(mark);
    RC_ASSERT(world.cluster().Dump() == before);
    RC_ASSERT(DiffersFromRebuilt(world) == "");
  });
}

TEST(State, IsTheSameAfterACycleThatDecidedNothing) {
  CheckScenes(kScenes, [] {
    const Scene scene = *AnyScene({});
    World world(scene);
    for (const auto& event : scene.events) {
      world.Apply(event);
      const auto before = world.cluster().Dump();
      const auto plan = world.scheduler().Cycle(world.now_ms());
      if (plan.empty()) {
        RC_ASSERT(world.cluster().Dump() == before);
        continue;
      }
      for (const auto& action : plan.actions) {
        const bool starts =
            action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow;
        if (!starts) world.cluster().ReportLeft({action.job, action.worker});
      }
    }
  });
}

}  // namespace
}  // namespace muster::properties

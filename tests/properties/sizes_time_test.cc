// What reservations promise where the sizes of elastic jobs are given out beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/random.h"
#include "generators.h"
#include "timed_play.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 300;

// Nobody takes turns, so that who has begun goes on to its end.
engine::Policy NoTurns() {
  engine::Policy policy;
  policy.turn_gpu_ms = INT64_MAX / 4;
  return policy;
}

constexpr std::array<double, 4> kSync = {-1, 0.01, 1, 100};

// Of each two one is rigid, and of four elastic ones three report how fast they are.
rc::Gen<std::vector<TimedJob>> AnyMix() {
  return rc::gen::container<std::vector<TimedJob>>(rc::gen::apply(
      [](int arrives, int workers, int gpus, int takes, int more, std::size_t sync) {
        TimedJob job{arrives, workers, gpus, takes, takes};
        if (more == 0) return job;
        job.workers = std::min(2, workers);
        job.gpus = std::min(2, gpus);
        job.most = job.workers + more;
        job.sync_s = kSync[sync];
        return job;
      },
      rc::gen::inRange(0, 120), rc::gen::inRange(1, 4), rc::gen::inRange(1, 5),
      rc::gen::inRange(1, 90),
      rc::gen::map(rc::gen::inRange(-8, 9), [](int more) { return std::max(0, more); }),
      rc::gen::inRange<std::size_t>(0, 4)));
}

// Workers that came or went because sizes were given out.
int Sized(const model::Plan& plan) {
  return static_cast<int>(std::ranges::count_if(plan.actions, [](const model::Action& action) {
    return action.rule == model::Rule::kResize || action.kind == model::ActionKind::kGrow;
  }));
}

TEST(Sizes, AreGivenOutWithoutDelayToAReservationWhereJobsTakeAsLongAsTheySay) {
  for (const auto& [rigid, bound] : {std::pair(Apart::kFixed, Bound::kNone),
                                     {Apart::kNested, Bound::kNone},
                                     {Apart::kNested, Bound::kLimit}}) {
    const int nodes = bound == Bound::kNone ? 3 : 40;  // with a limit there are more than enough
    int promised = 0, sized = 0;
    CheckScenes(kScenes, [&] {
      const auto jobs = *AnyMix();
      TimedPlay play(
          jobs, {.nodes = nodes, .policy = NoTurns(), .bound = bound, .gpus = 12, .rigid = rigid});
      std::map<std::size_t, std::int64_t> promise;  // the last one, by job
      play.Run([&](const model::Plan& plan, std::int64_t now_ms) {
        for (const auto& made : plan.reserved) {
          const auto job = play.IndexOf(made.job);
          if (jobs[job].Elastic()) continue;
          RC_ASSERT(made.at_ms > now_ms);
          const auto before = promise.try_emplace(job, made.at_ms).first;
          RC_ASSERT(made.at_ms <= before->second);
          before->second = made.at_ms;
          sized += Sized(plan);
        }
      });
      for (const auto& [job, at_ms] : promise) {
        RC_ASSERT(play.started().contains(job));
        RC_ASSERT(play.started().at(job) <= at_ms);
      }
      promised += static_cast<int>(promise.size());
    });
    EXPECT_GT(promised, kScenes / 4) << "too few reservations to prove anything";
    EXPECT_GT(sized, kScenes / 4) << "too few sizes to prove anything";
  }
}

}  // namespace
}  // namespace muster::properties

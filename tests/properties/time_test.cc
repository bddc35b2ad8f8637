// What reservations promise, where jobs take as long as they say, and where they do not.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "generators.h"
#include "timed_play.h"

namespace muster::properties {
namespace {

constexpr int kScenes = 300;

rc::Gen<std::vector<TimedJob>> AnyJobs(const std::vector<std::string>& types = {""}) {
  return rc::gen::container<std::vector<TimedJob>>(rc::gen::apply(
      [](int arrives, int workers, int gpus, int takes, const std::string& type) {
        return TimedJob{arrives, workers, gpus, takes, takes, type};
      },
      rc::gen::inRange(0, 120), rc::gen::inRange(1, 4), rc::gen::inRange(1, 5),
      rc::gen::inRange(1, 90), rc::gen::elementOf(types)));
}

TEST(Reservations, AreKeptWhereJobsTakeAsLongAsTheySay) {
  for (const auto bound : {Bound::kNone, Bound::kLimit, Bound::kQuota}) {
    // Where it is not the GPUs that are too few there are more than enough of them.
    const int nodes = bound == Bound::kNone ? 3 : 40;
    int promised = 0, passed = 0;
    CheckScenes(kScenes, [&] {
      const auto jobs = *AnyJobs();
      TimedPlay play(jobs, {.nodes = nodes, .bound = bound, .gpus = 12});
      std::map<std::size_t, std::int64_t> first;  // promise by job
      play.Run([&](const model::Plan& plan, std::int64_t now_ms) {
        RC_ASSERT(plan.reserved.size() <= 1);
        for (const auto& made : plan.reserved) {
          first.try_emplace(play.IndexOf(made.job), made.at_ms);
          RC_ASSERT(made.at_ms > now_ms);
        }
      });
      for (const auto& [job, at_ms] : first) {
        RC_ASSERT(play.started().contains(job));
        RC_ASSERT(play.started().at(job) <= at_ms);
        for (const auto& [other, since_ms] : play.started()) {
          passed += other > job && since_ms < play.started().at(job) &&
                    jobs[other].arrives_min > jobs[job].arrives_min;
        }
      }
      promised += static_cast<int>(first.size());
    });
    EXPECT_GT(promised, kScenes / 4) << "too few reservations to prove anything";
    EXPECT_GT(passed, kScenes / 20) << "too little backfill to prove anything";
  }
}

TEST(Reservations, OfDifferentGpuTypesAreKeptBesideEachOther) {
  int beside = 0;
  CheckScenes(kScenes, [&] {
    const auto jobs = *AnyJobs({"a", "b", ""});
    TimedPlay play(jobs, {.nodes = 6, .types = {"a", "b"}});
    std::map<std::size_t, std::int64_t> first;  // promise by job
    play.Run([&](const model::Plan& plan, std::int64_t now_ms) {
      RC_ASSERT(plan.reserved.size() <= 2);
      beside += plan.reserved.size() == 2;
      std::set<std::string> types;
      for (const auto& made : plan.reserved) {
        const auto job = play.IndexOf(made.job);
        first.try_emplace(job, made.at_ms);
        RC_ASSERT(made.at_ms > now_ms);
        RC_ASSERT(types.insert(jobs[job].type).second);
      }
      RC_ASSERT(types.size() < 2 || !types.contains(""));
    });
    for (const auto& [job, at_ms] : first) {
      RC_ASSERT(play.started().contains(job));
      RC_ASSERT(play.started().at(job) <= at_ms);
    }
  });
  EXPECT_GT(beside, kScenes / 10) << "too few at one time to prove anything";
}

// Small jobs come all the time, two for each that ends, and say nothing or too little.
std::vector<TimedJob> Stream(Random& random) {
  std::vector<TimedJob> jobs;
  for (int minute = 0; minute < 3'000; minute += 5) {
    for (int i = 0; i < 3; ++i) {
      const auto takes = static_cast<int>(20 + random.Between(0, 59));
      const auto says = random.Between(0, 1) == 0 ? 0 : takes / 3 + 1;
      jobs.push_back({minute, 1, 1, takes, says});
    }
  }
  jobs.push_back({60, 3, 4, 30, 30});  // the whole cluster
  return jobs;
}

TEST(Reservations, ABigGangNeverStarvesBehindAStreamOfSmallJobs) {
  for (const auto bound : {Bound::kNone, Bound::kLimit, Bound::kQuota}) {
    const int nodes = bound == Bound::kNone ? 3 : 8;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Random random(seed);
      const auto jobs = Stream(random);
      const auto gang = jobs.size() - 1;
      TimedSetup setup{.nodes = nodes, .bound = bound, .gpus = 12};
      setup.policy.backfill_patience_ms = 240 * kMinute;
      TimedPlay play(jobs, setup);
      play.Run([](const model::Plan&, std::int64_t) {});
      ASSERT_TRUE(play.started().contains(gang));
      // Its patience, and then at most as long as the longest of them runs.
      EXPECT_LE(play.started().at(gang), (60 + 240 + 80) * kMinute) << "seed " << seed;
      setup.policy.reserve = false;
      TimedPlay without(jobs, setup);
      without.Run([](const model::Plan&, std::int64_t) {});
      EXPECT_GT(without.started().at(gang), 3'000 * kMinute) << "it would not have starved anyway";
    }
  }
}

}  // namespace
}  // namespace muster::properties

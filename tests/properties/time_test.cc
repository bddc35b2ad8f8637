// What reservations promise, where jobs take as long as they say, and where they do not.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/random.h"
#include "engine/cluster.h"
#include "engine/cycle.h"
#include "generators.h"

namespace muster::properties {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr int kScenes = 300;

struct TimedJob {
  int arrives_min = 0, workers = 0, gpus = 0, takes_min = 0, says_min = 0;  // 0: says nothing
  std::string type = {};                                                    // of GPUs; empty: any
};

std::ostream& operator<<(std::ostream& out, const TimedJob& job) {
  return out << "at " << job.arrives_min << " min: " << job.workers << " x " << job.gpus << " GPUs "
             << job.type << " for " << job.takes_min << " min\n";
}

// What stops a queue beside the GPUs that there are.
enum class Bound { kNone, kLimit, kQuota };

// Jobs of one queue and one priority, played to their end. Nobody moves.
class TimedPlay {
 public:
  TimedPlay(const std::vector<TimedJob>& jobs, int nodes, const engine::Policy& policy,
            const std::vector<std::string>& types = {""}, Bound bound = Bound::kNone,
            std::int64_t gpus = 0)
      : jobs_(jobs), fixed_(bound == Bound::kQuota) {
    engine::Setup setup;
    auto& queue = setup.queues.emplace_back();
    queue.name = "q";
    if (bound == Bound::kLimit) queue.limit["gpus"] = gpus * kMilli;
    if (bound == Bound::kQuota) queue.quota["gpus"] = gpus * kMilli;
    setup.policy = policy;
    setup.policy.consolidate = false;
    cluster_ = std::move(*engine::Cluster::Make(std::move(setup)));
    scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
    for (int i = 0; i < nodes; ++i) {
      model::Node node;
      node.name = "n" + std::to_string(i);
      node.gpus.resize(4);
      for (auto& gpu : node.gpus) gpu.type = types[static_cast<std::size_t>(i) % types.size()];
      node.cpu_milli = 8'000;
      RC_ASSERT(cluster_->AddNode(node).has_value());
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) moments_.insert(jobs[i].arrives_min * kMinute);
  }

  // `look` is shown each plan before the next moment.
  void Run(const std::function<void(const model::Plan&, std::int64_t now_ms)>& look) {
    while (!moments_.empty()) {
      now_ms_ = *moments_.begin();
      moments_.erase(moments_.begin());
      LetEnd();
      LetCome();
      const auto plan = scheduler_->Cycle(now_ms_);
      for (const auto& action : plan.actions) {
        RC_ASSERT(action.kind == model::ActionKind::kStart);
        const auto index = index_.at(action.job);
        if (!started_.emplace(index, now_ms_).second) continue;
        const auto end = now_ms_ + jobs_[index].takes_min * kMinute;
        ends_.insert({end, index});
        moments_.insert(end);
      }
      look(plan, now_ms_);
    }
  }

  const std::map<std::size_t, std::int64_t>& started() const { return started_; }
  std::size_t IndexOf(engine::JobId id) const { return index_.at(id); }

 private:
  void LetEnd() {
    while (!ends_.empty() && ends_.begin()->first <= now_ms_) {
      cluster_->RemoveJob(ids_.at(ends_.begin()->second));
      ends_.erase(ends_.begin());
    }
  }

  void LetCome() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].arrives_min * kMinute != now_ms_) continue;
      model::Job job;
      job.name = "j" + std::to_string(i);
      job.queue = "q";
      job.preemptible = !fixed_;
      job.limits.time_ms = jobs_[i].says_min * kMinute;
      job.groups.emplace_back().minimum = jobs_[i].workers;
      auto& role = job.roles.emplace_back();
      role.count = jobs_[i].workers;
      role.request.gpu = {model::GpuKind::kWhole, jobs_[i].gpus, 0, 0};
      role.request.cpu_milli = 1'500 * jobs_[i].gpus;
      if (!jobs_[i].type.empty()) role.gpu_types = {jobs_[i].type};
      const auto id = *cluster_->AddJob(job, now_ms_);
      ids_[i] = id;
      index_[id] = i;
    }
  }

  const std::vector<TimedJob>& jobs_;
  bool fixed_;
  std::unique_ptr<engine::Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::set<std::int64_t> moments_;
  std::set<std::pair<std::int64_t, std::size_t>> ends_;
  std::map<std::size_t, engine::JobId> ids_;
  std::map<engine::JobId, std::size_t> index_;
  std::map<std::size_t, std::int64_t> started_;
  std::int64_t now_ms_ = 0;
};

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
      TimedPlay play(jobs, nodes, {}, {""}, bound, 12);
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
    TimedPlay play(jobs, 6, {}, {"a", "b"});
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
      engine::Policy policy;
      policy.backfill_patience_ms = 240 * kMinute;
      TimedPlay play(jobs, nodes, policy, {""}, bound, 12);
      play.Run([](const model::Plan&, std::int64_t) {});
      ASSERT_TRUE(play.started().contains(gang));
      // Its patience, and then at most as long as the longest of them runs.
      EXPECT_LE(play.started().at(gang), (60 + 240 + 80) * kMinute) << "seed " << seed;
      policy.reserve = false;
      TimedPlay without(jobs, nodes, policy, {""}, bound, 12);
      without.Run([](const model::Plan&, std::int64_t) {});
      EXPECT_GT(without.started().at(gang), 3'000 * kMinute) << "it would not have starved anyway";
    }
  }
}

}  // namespace
}  // namespace muster::properties

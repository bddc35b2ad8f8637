#include "state/job_order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "model/job_codec.h"
#include "state/state.h"

namespace muster::state {
namespace {

using ::testing::ElementsAre;

class JobOrderTest : public ::testing::Test {
 protected:
  JobOrderTest() { state_.KeepOrder(); }
  void Fold(model::EventBody body) { state_.Fold({1000, std::move(body)}); }
  static std::shared_ptr<const model::Job> Spec(const std::string& name, std::int64_t priority,
                                                std::int64_t gpus) {
    auto spec = model::DecodeJob("{name: x, queue: q, gpus: 1, command: [x]}").value();
    spec.name = name;
    spec.priority = priority;
    spec.roles[0].count = static_cast<int>(gpus);
    return std::make_shared<const model::Job>(std::move(spec));
  }
  JobNumber Submit(const std::string& name, std::int64_t priority, std::int64_t gpus,
                   const std::string& user = "ana") {
    const auto id = state_.next_job();
    Fold(model::JobSubmitted{id, Spec(name, priority, gpus), user, 1000, 1000, {}, ""});
    return id;
  }
  // The whole list, read in pages of `limit` by the place where the page before ended.
  std::vector<JobNumber> Pages(SortBy by, bool descending, std::size_t limit) const {
    std::vector<JobNumber> all;
    for (std::optional<JobOrder::Place> after;;) {
      std::size_t got = 0;
      state_.order().Walk(by, descending, after ? &*after : nullptr, [&](JobNumber id) {
        all.push_back(id);
        return ++got < limit;
      });
      if (got == 0) return all;
      after = {JobOrder::ValueOf(by, *state_.Find(all.back())), all.back()};
    }
  }

  State state_;
};

TEST_F(JobOrderTest, PagesShowEveryJobOnceInOrder) {
  Submit("b", 50, 1);
  Submit("a", 75, 4);
  Submit("b", 50, 2);
  Submit("c", 25, 1);
  Submit("a", 75, 1, "ben");
  for (const std::size_t limit : {1U, 2U, 10U}) {
    EXPECT_THAT(Pages(SortBy::kName, false, limit), ElementsAre(2, 5, 1, 3, 4));
    EXPECT_THAT(Pages(SortBy::kPriority, true, limit), ElementsAre(5, 2, 3, 1, 4));
    EXPECT_THAT(Pages(SortBy::kGpus, false, limit), ElementsAre(1, 4, 5, 3, 2));
    EXPECT_THAT(Pages(SortBy::kUser, true, limit), ElementsAre(5, 4, 3, 2, 1));
    EXPECT_THAT(Pages(SortBy::kQueue, false, limit), ElementsAre(1, 2, 3, 4, 5));
  }
}

TEST_F(JobOrderTest, APageGoesOnFromWhereAJobWas) {
  Submit("a", 50, 1);
  const auto moved = Submit("b", 50, 1);
  Submit("c", 50, 1);
  const JobOrder::Place place{JobOrder::ValueOf(SortBy::kName, *state_.Find(moved)), moved};
  Fold(model::JobChanged{moved, Spec("z", 50, 1), "", "", false});
  std::vector<JobNumber> rest;
  state_.order().Walk(SortBy::kName, false, &place, [&](JobNumber id) {
    rest.push_back(id);
    return true;
  });
  EXPECT_THAT(rest, ElementsAre(3, moved));
}

// Whatever was submitted, changed, put off, ended and forgotten: the orders are those of the jobs
// that are there.
TEST_F(JobOrderTest, FollowsEveryChangeOfTheState) {
  Random random(7);
  const auto some = [&] {
    return Spec(std::string(1, static_cast<char>('a' + random.Between(0, 8))),
                random.Between(0, 99), random.Between(1, 8));
  };
  std::vector<JobNumber> live;
  for (int step = 0; step < 6'000; ++step) {
    const auto dice = random.Between(0, 9);
    if (dice < 5 || live.empty()) {
      const auto spec = some();
      live.push_back(Submit(spec->name, spec->priority, 2, random.Chance(50) ? "ana" : "ben"));
      continue;
    }
    const auto at =
        static_cast<std::size_t>(random.Between(0, static_cast<std::int64_t>(live.size()) - 1));
    if (dice < 7) {
      const bool later = dice == 6;
      Fold(model::JobChanged{live[at], some(), "", "", later});
      if (later) Fold(model::JobRequeued{live[at]});
    } else {
      Fold(model::JobEnded{live[at], model::End::kSucceeded});
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  ASSERT_LT(state_.jobs().size(), state_.next_job() - 1);  // some were forgotten
  for (const auto by :
       {SortBy::kName, SortBy::kUser, SortBy::kQueue, SortBy::kPriority, SortBy::kGpus}) {
    std::vector<std::pair<JobOrder::Value, JobNumber>> expected;
    for (const auto& [id, job] : state_.jobs()) {
      expected.emplace_back(JobOrder::ValueOf(by, job), id);
    }
    std::sort(expected.begin(), expected.end());
    std::vector<JobNumber> ids;
    for (const auto& one : expected) ids.push_back(one.second);
    EXPECT_EQ(Pages(by, false, 100), ids);
    std::reverse(ids.begin(), ids.end());
    EXPECT_EQ(Pages(by, true, 100), ids);
  }
}

// The trial of a plan is a copy that goes its own way; the original's order must not notice.
TEST_F(JobOrderTest, ACopyOfTheStateLeavesTheOrderAlone) {
  const auto job = Submit("a", 50, 1);
  {
    State copy = state_;
    copy.Fold({1000, model::JobChanged{job, Spec("z", 50, 1), "", "", false}});
  }
  Submit("b", 50, 1);
  EXPECT_THAT(Pages(SortBy::kName, false, 10), ElementsAre(1, 2));
}

}  // namespace
}  // namespace muster::state

#include "engine/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/cycle.h"
#include "engine/explain.h"

namespace muster::engine {
namespace {

using model::Gate;

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;

class TimelineTest : public testing::Test {
 protected:
  void SetUp() override { Make({}); }

  // The first node has GPUs of the first type, the second of the second, and so on in turn.
  void Make(const Policy& policy, int nodes = 2, const std::vector<std::string>& types = {""}) {
    engine::Setup setup;
    setup.queues.emplace_back().name = "q";
    setup.queues.emplace_back().name = "other";
    setup.policy = policy;
    cluster_ = std::move(*Cluster::Make(std::move(setup)));
    scheduler_ = std::make_unique<Scheduler>(*cluster_);
    for (int i = 0; i < nodes; ++i) {
      model::Node node;
      node.name = "n" + std::to_string(i);
      node.gpus.resize(4);
      for (auto& gpu : node.gpus) gpu.type = types[static_cast<std::size_t>(i) % types.size()];
      node.cpu_milli = 16'000;
      EXPECT_TRUE(cluster_->AddNode(node).has_value());
    }
    now_ms_ = kHour;
  }

  // A gang of workers with so many GPUs each that says how long it takes; 0: it does not.
  JobId Add(const std::string& name, int workers, int gpus, std::int64_t takes_ms,
            const std::string& queue = "q", const std::vector<std::string>& types = {}) {
    model::Job job;
    job.name = name;
    job.queue = queue;
    job.limits.time_ms = takes_ms;
    job.groups.emplace_back().minimum = workers;
    auto& role = job.roles.emplace_back();
    role.count = workers;
    role.request.gpu = {model::GpuKind::kWhole, gpus, 0, 0};
    role.request.cpu_milli = 1'000 * gpus;
    role.gpu_types = types;
    return *cluster_->AddJob(job, now_ms_);
  }

  model::Plan Cycle() { return scheduler_->Cycle(now_ms_); }
  bool Runs(JobId job) const { return cluster_->job(job).Satisfied(); }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Scheduler> scheduler_;
  std::int64_t now_ms_ = 0;
};

TEST_F(TimelineTest, TheFirstGangWithoutRoomIsReservedTheTimeAtWhichEnoughHaveEnded) {
  Add("two-hours", 1, 4, 2 * kHour);
  Add("one-hour", 1, 2, kHour);
  Cycle();
  const JobId gang = Add("gang", 2, 4, kHour);
  Add("tail", 1, 1, 9 * kHour);
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].job, gang);
  EXPECT_EQ(plan.reserved[0].at_ms, now_ms_ + 2 * kHour);
  ASSERT_EQ(plan.reserved[0].rooms.size(), 2U);
}

TEST_F(TimelineTest, AGangThatWaitsForAThousandJobsIsReservedItsTimeToo) {
  constexpr int kNodes = 300;
  Make({}, kNodes + 1);
  for (int i = 1; i <= 4 * kNodes; ++i) Add("small-" + std::to_string(i), 1, 1, i * kMinute);
  Cycle();
  const JobId gang = Add("gang", kNodes + 1, 4, kHour);
  Add("tail", 1, 1, 99 * kHour);
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].job, gang);
  EXPECT_EQ(plan.reserved[0].at_ms, now_ms_ + 4 * kNodes * kMinute);
}

// Of a group of groups numbers say nothing, so each look ahead is a search for places.
TEST_F(TimelineTest, TheFirstTimeIsFoundHoweverManyLooksWereInVain) {
  constexpr int kNodes = 60;
  Make({}, kNodes + 1);
  std::vector<JobId> small;
  std::map<JobId, std::int64_t> ends_ms;
  for (int i = 0; i < 4 * kNodes; ++i) {
    const auto takes_ms = (i * 101 % (4 * kNodes) + 1) * kMinute;
    small.push_back(Add("small-" + std::to_string(i), 1, 1, takes_ms));
    ends_ms[small.back()] = now_ms_ + takes_ms;
  }
  Cycle();
  std::map<BankId, std::int64_t> free_ms;  // by node
  for (const JobId id : small) {
    auto& at_ms = free_ms[cluster_->worker({id, 0}).place.bank];
    at_ms = std::max(at_ms, ends_ms[id]);
  }
  std::vector<std::int64_t> in_order;
  for (const auto& [bank, at_ms] : free_ms) in_order.push_back(at_ms);
  std::ranges::sort(in_order);
  model::Job job;
  job.name = "nested";
  job.queue = "q";
  job.groups.emplace_back().minimum = 1;
  auto& inner = job.groups.emplace_back();
  inner.parent = 0;
  inner.minimum = 9;
  auto& role = job.roles.emplace_back();
  role.group = 1;
  role.count = 9;
  role.request.gpu = {model::GpuKind::kWhole, 4, 0, 0};
  ASSERT_TRUE(cluster_->AddJob(job, now_ms_).has_value());
  Add("tail", 1, 1, 99 * kHour);
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].at_ms, in_order[7]) << "one node is free now";
}

TEST_F(TimelineTest, WhoeverEndsBeforePassesAndWhoeverDoesNotWaits) {
  Add("runs", 1, 4, 2 * kHour);
  Cycle();
  const JobId gang = Add("gang", 2, 4, kHour);
  const JobId lasting = Add("lasting", 1, 1, 3 * kHour);
  const JobId brief = Add("brief", 1, 1, 2 * kHour);
  Cycle();
  EXPECT_TRUE(Runs(brief));
  EXPECT_FALSE(Runs(lasting));
  EXPECT_FALSE(Runs(gang));
  const auto why = Explain(*cluster_, lasting, now_ms_);
  EXPECT_EQ(why.gate, Gate::kReserved);
  EXPECT_EQ(why.kept.job, gang);
  EXPECT_EQ(why.kept.from_ms, now_ms_ + 2 * kHour);
  EXPECT_NE(Sentence(*cluster_, why).find("kept"), std::string::npos);
}

TEST_F(TimelineTest, RoomThatTheGangWillNotNeedIsFreeForAll) {
  Make({}, 3);
  Add("runs", 1, 4, 2 * kHour);
  Add("small", 1, 1, 3 * kHour);
  Cycle();
  Add("gang", 2, 4, kHour);  // in two hours: the first node and the third, which is free now
  const JobId whole = Add("whole", 1, 4, 9 * kHour);
  const JobId beside = Add("beside", 1, 3, 9 * kHour);  // the small one
  Cycle();
  EXPECT_FALSE(Runs(whole));
  EXPECT_TRUE(Runs(beside));
}

TEST_F(TimelineTest, WithoutBackfillNobodyPasses) {
  Policy policy;
  policy.backfill = false;
  Make(policy);
  Add("runs", 1, 4, 2 * kHour);
  Cycle();
  Add("gang", 2, 4, kHour);
  const JobId brief = Add("brief", 1, 1, kMinute);
  Cycle();
  EXPECT_FALSE(Runs(brief));
}

TEST_F(TimelineTest, WithoutReservationsSmallJobsTakeTheRoom) {
  Policy policy;
  policy.reserve = false;
  Make(policy);
  Add("runs", 1, 4, 2 * kHour);
  Cycle();
  Add("gang", 2, 4, kHour);
  const JobId lasting = Add("lasting", 1, 1, 9 * kHour);
  EXPECT_TRUE(Cycle().reserved.empty());
  EXPECT_TRUE(Runs(lasting));
}

TEST_F(TimelineTest, AGangThatHasWaitedTooLongIsPassedByNobody) {
  Add("runs", 1, 4, 99 * kHour);
  Cycle();
  Add("gang", 2, 4, kHour);
  now_ms_ += 25 * kHour;
  const JobId brief = Add("brief", 1, 1, kMinute);
  Cycle();
  EXPECT_FALSE(Runs(brief));
}

TEST_F(TimelineTest, WhoTakesLongerThanExpectedIsExpectedToTakeHalfAsLongAgain) {
  const JobId runs = Add("runs", 1, 4, kHour);
  Cycle();
  Add("gang", 2, 4, kHour);
  Add("tail", 1, 1, 9 * kHour);
  now_ms_ += kHour;
  auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].at_ms, now_ms_ + kHour / 2);
  cluster_->SetExpected(runs, 8 * kHour);
  now_ms_ += kMinute;  // it is not looked at anew in every cycle
  plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].at_ms, 9 * kHour);
}

TEST_F(TimelineTest, NothingIsKeptForWhatCanNeverStartOrMayNot) {
  Add("runs", 1, 1, kHour);
  Cycle();
  Add("huge", 3, 4, kHour);
  const JobId behind = Add("behind", 1, 1, 9 * kHour);
  EXPECT_TRUE(Cycle().reserved.empty());
  EXPECT_TRUE(Runs(behind));
}

TEST_F(TimelineTest, LeavesTheClusterAsItWas) {
  Add("runs", 1, 3, kHour);
  Add("too", 1, 2, kHour);
  Cycle();
  Add("gang", 2, 4, kHour);
  Add("lasting", 1, 1, 9 * kHour);
  ASSERT_FALSE(Cycle().reserved.empty());
  const auto before = cluster_->Dump();
  ASSERT_FALSE(Cycle().reserved.empty());
  EXPECT_EQ(cluster_->Dump(), before);
}

class TypedTest : public TimelineTest {
 protected:
  // Two nodes with GPUs of type a and two of type b; the first of each is taken for so long.
  void SetUp() override {
    Make({}, 4, {"a", "b"});
    Add("runs-a", 1, 4, 2 * kHour, "q", {"a"});
    Add("runs-b", 1, 4, 3 * kHour, "q", {"b"});
    Cycle();
  }
  JobId Gang(const std::vector<std::string>& types) {
    return Add("gang" + std::to_string(++gangs_), 2, 4, kHour, "q", types);
  }
  JobId Small(const std::string& type) {
    return Add("small-" + type, 1, 1, 9 * kHour, "q", {type});
  }
  int gangs_ = 0;
};

TEST_F(TypedTest, GangsOfDifferentTypesHaveAReservationEach) {
  const JobId first = Gang({"a"}), behind = Gang({"a"}), other = Gang({"b"});
  const JobId on_a = Small("a"), on_b = Small("b");
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 2U);
  EXPECT_EQ(plan.reserved[0].job, first);
  EXPECT_EQ(plan.reserved[0].at_ms, now_ms_ + 2 * kHour);
  EXPECT_EQ(plan.reserved[1].job, other);
  EXPECT_EQ(plan.reserved[1].at_ms, now_ms_ + 3 * kHour);
  for (const JobId job : {first, behind, other, on_a, on_b}) EXPECT_FALSE(Runs(job));
  EXPECT_EQ(Explain(*cluster_, on_a, now_ms_).kept.job, first);
  EXPECT_EQ(Explain(*cluster_, on_b, now_ms_).kept.job, other);
  now_ms_ += kMinute / 4;
  EXPECT_EQ(Cycle().reserved.size(), 2U) << "they stand";
}

TEST_F(TypedTest, WhoComesBeforeAndCouldTakeTheTypeIsNotPassed) {
  const JobId first = Gang({"a"});
  Gang({"a", "b"});  // waits for both
  Gang({"b"});
  Small("a");
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].job, first);
}

TEST_F(TypedTest, AGangThatTakesAnyTypeHasTheOnlyReservation) {
  const JobId any = Add("any", 3, 4, kHour);
  Gang({"b"});
  Small("a");
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].job, any);
}

class BookedTest : public TimelineTest {
 protected:
  // All GPUs of the first node for queue "other", two hours from now, for two hours.
  void Book(int gpus = 4, const std::string& queue = "other") {
    cluster_->SetReservations(
        {{"demo", queue, now_ms_ + 2 * kHour, now_ms_ + 4 * kHour, {{"n0", gpus}}, ""}});
  }
};

TEST_F(BookedTest, OthersStartThereOnlyIfTheyEndBefore) {
  Book();
  const JobId brief = Add("brief", 1, 4, kHour);
  const JobId lasting = Add("lasting", 2, 4, 9 * kHour);
  const JobId apart = Add("apart", 1, 4, 9 * kHour);
  Cycle();
  EXPECT_FALSE(Runs(lasting));
  EXPECT_TRUE(Runs(brief));
  EXPECT_TRUE(Runs(apart)) << "on the node that is not reserved";
  cluster_->RemoveJob(brief);
  cluster_->RemoveJob(lasting);
  const JobId late = Add("late", 1, 1, 3 * kHour);
  Cycle();
  EXPECT_FALSE(Runs(late));
  const auto why = Explain(*cluster_, late, now_ms_);
  EXPECT_EQ(why.gate, Gate::kReserved);
  EXPECT_NE(Sentence(*cluster_, why).find("reservation demo"), std::string::npos);
  const JobId mine = Add("mine", 1, 4, 9 * kHour, "other");
  Cycle();
  EXPECT_TRUE(Runs(mine)) << "whose it is may have it before, too";
}

TEST_F(BookedTest, WhatIsKeptIsSaidByTheNameOfTheReservationAlsoWhenOthersHaveGone) {
  const auto booked = [this](const std::string& name, const std::string& queue) {
    return model::Reservation{
        name, queue, now_ms_ + 2 * kHour, now_ms_ + 4 * kHour, {{name == "demo" ? "n0" : "n1", 4}},
        ""};
  };
  const auto said = [this](JobId job) {
    return Sentence(*cluster_, Explain(*cluster_, job, now_ms_));
  };
  cluster_->SetReservations({booked("mine", "q"), booked("demo", "other")});
  Add("fills", 1, 4, 9 * kHour);
  const JobId late = Add("late", 1, 4, 9 * kHour);
  Cycle();
  EXPECT_NE(said(late).find("reservation demo"), std::string::npos) << said(late);
  cluster_->SetReservations({booked("demo", "other")});
  EXPECT_NE(said(late).find("reservation demo"), std::string::npos) << said(late);
  cluster_->SetReservations({booked("new", "other")});
  EXPECT_EQ(said(late).find("reservation"), std::string::npos) << said(late);
}

TEST_F(BookedTest, WhoIsStillThereLeavesWhenItBegins) {
  Policy policy;
  policy.reclaim = false;
  Make(policy, 1);
  const JobId old = Add("old", 1, 2, 9 * kHour);
  Cycle();
  const JobId young = Add("young", 1, 2, 9 * kHour);
  now_ms_ += kMinute;
  Cycle();
  Book(3, "other");
  const JobId mine = Add("mine", 1, 3, 9 * kHour, "other");
  EXPECT_TRUE(Cycle().actions.empty());
  now_ms_ += 2 * kHour;
  const auto plan = Cycle();
  ASSERT_EQ(plan.actions.size(), 2U);
  for (const auto& action : plan.actions) {
    EXPECT_EQ(action.rule, model::Rule::kReservation);
    EXPECT_EQ(action.kind, model::ActionKind::kPause);
    cluster_->ReportLeft({action.job, action.worker});
  }
  EXPECT_EQ(plan.actions[0].job, old);
  EXPECT_EQ(plan.actions[1].job, young);
  Cycle();
  EXPECT_TRUE(Runs(mine));
  EXPECT_FALSE(Runs(young));
  EXPECT_TRUE(Cycle().actions.empty()) << "and comes to rest";
}

TEST_F(BookedTest, WhatIsReservedForNobodyStaysEmptyUntilItsEnd) {
  Make({}, 1);
  Book(4, "");
  now_ms_ += 2 * kHour;
  const JobId job = Add("job", 1, 1, kMinute);
  Cycle();
  EXPECT_FALSE(Runs(job));
  now_ms_ += 2 * kHour;
  Cycle();
  EXPECT_TRUE(Runs(job));
}

TEST_F(BookedTest, AGangThatFitsBesideItIsReservedItsTime) {
  Make({}, 3);
  Book(4, "");
  Add("runs", 1, 4, 3 * kHour);
  Cycle();
  const JobId gang = Add("gang", 2, 4, 9 * kHour);
  const JobId lasting = Add("lasting", 1, 4, 9 * kHour);
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].job, gang);
  EXPECT_EQ(plan.reserved[0].at_ms, now_ms_ + 3 * kHour);
  EXPECT_FALSE(Runs(lasting)) << "it would be in its way";
}

TEST_F(BookedTest, ThoseOfDifferentTimesKeepTheSameGpus) {
  Make({}, 1);
  const auto booked = [this](const std::string& name, int from_h, int to_h) {
    return model::Reservation{name,        "", now_ms_ + from_h * kHour, now_ms_ + to_h * kHour,
                              {{"n0", 2}}, ""};
  };
  cluster_->SetReservations({booked("a-later", 4, 6), booked("b-sooner", 2, 4)});
  const JobId lasting = Add("lasting", 1, 4, 9 * kHour);
  const JobId until_later = Add("until-later", 1, 3, 3 * kHour);
  const JobId beside = Add("beside", 1, 2, 9 * kHour);
  const JobId brief = Add("brief", 1, 2, kHour);
  Cycle();
  EXPECT_FALSE(Runs(lasting));
  EXPECT_FALSE(Runs(until_later)) << "it would still be there when the sooner one begins";
  EXPECT_TRUE(Runs(beside)) << "both together keep two GPUs, and the cores of two";
  EXPECT_TRUE(Runs(brief));
}

// Work that is not preemptible waits for ever where its queue has no quota that is as large.
TEST_F(TimelineTest, ThoseThatTheirBoundsNeverAdmitKeepNobodyFromAReservation) {
  for (int i = 0; i < 4; ++i) {
    model::Job job;
    job.name = "never-" + std::to_string(i);
    job.queue = "other";
    job.preemptible = false;
    job.priority = 60;
    job.groups.emplace_back().minimum = 1;
    auto& role = job.roles.emplace_back();
    role.count = 1;
    role.request.gpu = {model::GpuKind::kWhole, 1 + i % 4, 0, 0};
    ASSERT_TRUE(cluster_->AddJob(job, now_ms_).has_value());
  }
  Add("runs", 1, 4, 2 * kHour);
  Cycle();
  const JobId gang = Add("gang", 2, 4, kHour);
  Add("small", 1, 1, 9 * kHour);
  const auto plan = Cycle();
  ASSERT_EQ(plan.reserved.size(), 1U);
  EXPECT_EQ(plan.reserved[0].job, gang);
}

}  // namespace
}  // namespace muster::engine

#include "state/state.h"

#include <gtest/gtest.h>

#include "model/job_codec.h"
#include "model/pack.h"

namespace muster::state {
namespace {

using model::End;
using model::StopWhy;

class StateTest : public ::testing::Test {
 protected:
  void Fold(model::EventBody body) { state_.Fold({now_ms_++, std::move(body)}); }
  JobNumber Submit(const std::string& text, std::vector<model::Follows> follows = {}) {
    const auto id = state_.next_job();
    auto spec = std::make_shared<const model::Job>(model::DecodeJob(text).value());
    Fold(model::JobSubmitted{id, spec, "ana", 1000, 1000, std::move(follows), ""});
    return id;
  }
  void Exit(JobNumber job, std::uint32_t worker, int code, bool stopped = false) {
    model::ExitFacts exit;
    exit.exit_code = code;
    exit.stopped = stopped;
    Fold(model::WorkerEnded{job, worker, 1, exit});
  }
  Phase At(JobNumber job) const { return PhaseOf(*state_.Find(job)); }

  State state_;
  std::int64_t now_ms_ = 1000;
};

constexpr const char* kTwo = "{name: t, queue: q, workers: 2, gpus: 1, command: [x]}";

TEST_F(StateTest, AJobGoesFromWaitingToSucceeded) {
  const auto job = Submit(kTwo);
  EXPECT_EQ(At(job), Phase::kWaiting);
  Fold(model::WorkerPlaced{job, 0, 1, "n", 1});
  Fold(model::WorkerPlaced{job, 1, 1, "n", 2});
  EXPECT_EQ(At(job), Phase::kStarting);
  Fold(model::WorkerStarted{job, 0, 1, 100, 1500, ""});
  EXPECT_EQ(At(job), Phase::kRunning);
  Exit(job, 0, 0);
  Exit(job, 1, 0);
  Fold(model::JobEnded{job, End::kSucceeded});
  EXPECT_EQ(At(job), Phase::kSucceeded);
  EXPECT_EQ(state_.Find(job)->started_ms, 1500);
}

TEST_F(StateTest, ARecordSaysWhenItCameAndWhichRevisionLastChangedIt) {
  model::Node node;
  node.name = "n";
  Fold(model::NodeJoined{node});
  Fold(model::NodeMarked{"n", true, false, "root"});
  EXPECT_EQ(state_.nodes().at("n").joined_ms, 1000);
  EXPECT_EQ(state_.nodes().at("n").revision, 2U);
  model::Queue a, b;
  a.name = "a";
  b.name = "b";
  Fold(model::QueuesApplied{{a, b}, "root"});
  b.priority = 7;
  Fold(model::QueuesApplied{{a, b}, "root"});
  EXPECT_EQ(state_.RecordOf("a").revision, 3U);
  EXPECT_EQ(state_.RecordOf("b").revision, 4U);
  EXPECT_EQ(state_.RecordOf("b").created_ms, 1002);
  Fold(model::UserSet{"ana", "user", {}, "root"});
  Fold(model::UserSet{"ana", "admin", {}, "root"});
  EXPECT_EQ(state_.users().at("ana").created_ms, 1004);
  EXPECT_EQ(state_.users().at("ana").revision, 6U);
  Fold(model::TokenMade{"t", "laptop", "ana", "", 0, "", "root"});
  EXPECT_EQ(state_.tokens().at("t").revision, 7U);
  const auto copy = State::Decode(state_.Encode());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->nodes().at("n").revision, 2U);
  EXPECT_EQ(copy->RecordOf("b").revision, 4U);
  EXPECT_EQ(copy->users().at("ana").revision, 6U);
}

TEST_F(StateTest, TheCauseOfAPauseOutlivesTheExitThatFollows) {
  const auto job = Submit(kTwo);
  for (std::uint32_t w : {0U, 1U}) Fold(model::WorkerPlaced{job, w, 1, "n", 1});
  const auto at = now_ms_;
  for (std::uint32_t w : {0U, 1U}) {
    state_.Fold(
        {at, model::WorkerLeaving{job, w, StopWhy::kPaused, model::Rule::kReclaimQuota, 9, 70}});
  }
  EXPECT_EQ(At(job), Phase::kStopping);
  Exit(job, 0, 143, true);
  Exit(job, 1, 143, true);
  EXPECT_EQ(At(job), Phase::kPaused);
  const auto& record = *state_.Find(job);
  ASSERT_EQ(record.preemptions.size(), 1U);
  EXPECT_EQ(record.preemptions[0].cause, 9U);
  EXPECT_EQ(record.preemptions[0].rule, model::Rule::kReclaimQuota);
  EXPECT_EQ(record.preemptions[0].workers, 2U);
  EXPECT_EQ(record.preempted, 1U);
}

TEST_F(StateTest, ALeavingWorkerThatFinishedByItselfHasSucceeded) {
  const auto job = Submit(kTwo);
  Fold(model::WorkerPlaced{job, 0, 1, "n", 1});
  Fold(model::WorkerLeaving{job, 0, StopWhy::kShrunk, model::Rule::kShrink, 9, 0});
  Exit(job, 0, 0, /*stopped=*/false);
  EXPECT_EQ(state_.Find(job)->workers[0].phase, WorkerPhase::kSucceeded);
}

TEST_F(StateTest, AnArrayIsOneEventAndCountsItsTasks) {
  const auto array = Submit("{name: s, queue: q, gpus: 1, command: [x], array: 5-7}");
  EXPECT_EQ(state_.next_job(), array + 4);
  EXPECT_EQ(state_.Find(array + 1)->name(), "s[5]");
  EXPECT_EQ(state_.FindArray(array)->revision, state_.revision());
  EXPECT_EQ(state_.Find(array + 1)->revision, state_.revision());
  Fold(model::WorkerPlaced{array + 2, 0, 1, "n", 1});
  EXPECT_EQ(state_.FindArray(array)->revision, state_.revision()) << "one of its tasks has changed";
  EXPECT_EQ(state_.ActiveTasks(array), 1);
  Exit(array + 2, 0, 0);
  EXPECT_EQ(state_.ActiveTasks(array), 0);
  for (JobNumber task = array + 1; task <= array + 3; ++task) {
    EXPECT_FALSE(state_.FindArray(array)->Ended());
    Fold(model::JobEnded{task, End::kSucceeded});
  }
  EXPECT_TRUE(state_.FindArray(array)->Ended());
}

TEST_F(StateTest, OfItsSpeedAJobToldTheLatestIsKnownAndNotWithoutEnd) {
  const auto job = Submit(kTwo);
  EXPECT_EQ(state_.Find(job)->speed, nullptr);
  model::Speed speed;
  for (int gpus = 1; gpus <= 2 * static_cast<int>(kSpeedsKept); ++gpus) {
    speed.gpus = gpus;
    speed.step_us = 100;
    Fold(model::SpeedReported{job, speed});
    speed.step_us = 200;
    Fold(model::SpeedReported{job, speed});
  }
  const auto known = state_.Find(job)->speed;
  EXPECT_EQ(known->told.size(), kSpeedsKept);
  EXPECT_EQ(known->latest, speed);
  for (const auto& told : known->told) EXPECT_EQ(told.step_us, 200);
  auto again = State::Decode(state_.Encode());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->Find(job)->speed->told, known->told);
}

TEST_F(StateTest, ASpeedOfNoTypeIsThatOfTheGpusItHolds) {
  model::Node node;
  node.name = "n";
  node.gpus.resize(2);
  node.gpus[0].type = "A100";
  node.gpus[1].type = "H100";
  Fold(model::NodeJoined{node});
  const auto job = Submit(kTwo);
  model::Speed speed;
  Fold(model::SpeedReported{job, speed});  // it holds nothing
  Fold(model::WorkerPlaced{job, 0, 1, "n", 2});
  Fold(model::SpeedReported{job, speed});
  speed.gpu_type = "A100";
  Fold(model::SpeedReported{job, speed});
  std::vector<std::string> types;
  for (const auto& told : state_.Find(job)->speed->told) types.push_back(told.gpu_type);
  EXPECT_EQ(types, (std::vector<std::string>{"", "H100", "A100"}));
}

TEST_F(StateTest, TheGpuTimeThatAJobHeldIsCounted) {
  const auto job = Submit("{name: t, queue: q, workers: 1..4, gpus: 2, command: [x]}");
  const auto at = [&](std::int64_t ms, model::EventBody body) {
    state_.Fold({ms, std::move(body)});
  };
  const auto held = [&](std::int64_t ms) { return state_.Find(job)->GpuMs(ms); };
  at(10'000, model::WorkerPlaced{job, 0, 1, "n", 3});
  at(10'000, model::WorkerStarted{job, 0, 1, 100, 10'000, ""});
  at(11'000, model::WorkerPlaced{job, 1, 1, "n", 12});
  EXPECT_EQ(held(11'000), 2'000);
  EXPECT_EQ(held(12'000), 6'000);
  model::ExitFacts exit;
  exit.stopped = true;
  at(12'000, model::WorkerEnded{job, 0, 1, exit});
  EXPECT_EQ(held(13'000), 8'000);
  at(13'000, model::JobEnded{job, End::kCancelled});
  EXPECT_EQ(held(14'000), 8'000);
}

// It says neither what was counted nor until when.
TEST_F(StateTest, TheGpuTimeOfARecordOfAnEarlierVersionIsThatSinceItsStart) {
  const auto job = Submit("{name: t, queue: q, workers: 1..4, gpus: 2, command: [x]}");
  state_.Fold({10'000, model::WorkerPlaced{job, 0, 1, "n", 3}});
  JobRecord record = *state_.Find(job);
  record.gpu_ms = record.gpus_since_ms = 0;
  EXPECT_EQ(record.GpuMs(15'000), 10'000);
}

TEST_F(StateTest, TheSizesOfAnElasticJobAreKeptWithWhyAndWhatTheyCost) {
  const auto job = Submit("{name: t, queue: q, workers: 1..4, gpus: 1, command: [x]}");
  const auto other = Submit(kTwo);
  const auto sizes = [&]() -> const std::vector<SizeChange>& { return state_.Find(job)->sizes; };
  for (std::uint32_t w = 0; w < 4; ++w) {
    Fold(model::WorkerPlaced{job, w, 1, "n", 1U << w});
    Fold(model::WorkerStarted{job, w, 1, 100, now_ms_, ""});
  }
  Fold(model::JobResized{job, now_ms_, 4, 30, 7});
  now_ms_ += 5'000;
  const auto shrunk_ms = now_ms_;
  for (const std::uint32_t w : {3U, 2U}) {
    Fold(model::WorkerLeaving{job, w, StopWhy::kShrunk, model::Rule::kReclaimQuota, other, -1});
  }
  Exit(job, 3, 0, true);
  Exit(job, 2, 0, true);
  const auto told_ms = now_ms_;
  Fold(model::JobResized{job, told_ms, 3, 20, 9});
  Fold(model::JobResized{job, told_ms + 1, 2, 15, 9});
  now_ms_ += 5'000;
  Exit(job, 1, 9);
  ASSERT_EQ(sizes().size(), 3U);
  EXPECT_EQ((std::pair{sizes()[0].from, sizes()[0].to}), (std::pair{0U, 4U}));
  EXPECT_EQ(sizes()[0].pause_ms, 30);
  EXPECT_EQ((std::pair{sizes()[1].from, sizes()[1].to}), (std::pair{4U, 2U}));
  EXPECT_EQ(sizes()[1].at_ms, shrunk_ms);
  EXPECT_EQ(sizes()[1].why, StopWhy::kShrunk);
  EXPECT_EQ(sizes()[1].cause, other);
  EXPECT_EQ(sizes()[1].pause_ms, 35) << "all pauses of the change";
  EXPECT_EQ(state_.Find(job)->pause_ms, 24) << "30, then a quarter of 20, then of 15";
  EXPECT_EQ((std::pair{sizes()[2].from, sizes()[2].to}), (std::pair{2U, 1U})) << "lost";
  EXPECT_EQ(sizes()[2].pause_ms, -1);
  EXPECT_EQ(state_.Find(job)->resized_ms, told_ms + 1);
  for (int i = 0; i < 30; ++i) {
    Fold(model::WorkerPlaced{job, 1, 2, "n", 2});
    now_ms_ += 5'000;
    Exit(job, 1, 9);
  }
  EXPECT_EQ(sizes().size(), kSizesKept);
  const auto copy = State::Decode(state_.Encode());
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(copy->Encode(), state_.Encode());
  EXPECT_EQ(copy->Find(job)->sizes.size(), kSizesKept);
  Fold(model::WorkerPlaced{other, 0, 1, "n", 1});
  EXPECT_TRUE(state_.Find(other)->sizes.empty()) << "it has one size";
}

TEST_F(StateTest, WhoFollowsIsReleasedByTheEnd) {
  const auto first = Submit(kTwo);
  const auto second = Submit(kTwo, {{first, model::AfterCondition::kOk}});
  EXPECT_EQ(state_.Find(second)->follows.size(), 1U);
  Fold(model::JobEnded{first, End::kSucceeded});
  EXPECT_TRUE(state_.Find(second)->follows.empty());
}

TEST_F(StateTest, ASnapshotIsTheStateAndFoldingGoesOn) {
  const auto array = Submit("{name: s, queue: q, gpus: 1, command: [x], array: 0-99}");
  const auto job = Submit(kTwo);
  Fold(model::WorkerPlaced{job, 0, 1, "n", 1});
  Fold(model::WorkerPlaced{array + 1, 0, 1, "n", 2});
  model::Node node;
  node.name = "n";
  Fold(model::NodeJoined{node});
  Fold(model::UserSet{"ana", "admin", {"vision"}, "root"});
  Fold(model::TokenMade{"t1", "laptop", "ana", "9f86", 5'000, "viewer", "root"});
  auto copy = State::Decode(state_.Encode());
  ASSERT_TRUE(copy.has_value()) << copy.error().message;
  EXPECT_EQ(copy->Encode(), state_.Encode());
  EXPECT_EQ(copy->revision(), state_.revision());
  EXPECT_EQ(copy->Named("s").back(), array);
  EXPECT_EQ(copy->ActiveTasks(array), 1);
  EXPECT_EQ(copy->users().at("ana").groups, (std::vector<std::string>{"vision"}));
  EXPECT_EQ(copy->tokens().at("t1").hash, "9f86");
  const model::Event more{9, model::JobEnded{array + 1, End::kFailed}};
  copy->Fold(more);
  state_.Fold(more);
  EXPECT_EQ(copy->Encode(), state_.Encode());
}

TEST_F(StateTest, TheLatestPoliciesAreKeptAndTheLastIsInForce) {
  EXPECT_TRUE(state_.policies().empty());
  const auto applied_ms = now_ms_;
  for (std::uint64_t id = 1; id <= kPoliciesKept + 2; ++id) {
    const auto before = static_cast<std::int64_t>(id) - 1;
    const auto value = std::to_string(id);
    Fold(model::PolicyApplied{id, "p" + value, "", {{"move_limit", value}}, "root", 0, before});
  }
  const auto copy = State::Decode(state_.Encode());
  ASSERT_TRUE(copy.has_value());
  ASSERT_EQ(copy->policies().size(), kPoliciesKept);
  EXPECT_EQ(copy->policies().front().said.id, 3U);
  EXPECT_EQ(copy->policies().front().applied_ms, applied_ms + 2);
  const auto& last = copy->policies().back();
  EXPECT_EQ(last.said.settings.at("move_limit"), "18");
  EXPECT_EQ(last.said.before, 17);
  EXPECT_EQ(last.revision, copy->revision());
  EXPECT_EQ(copy->Encode(), state_.Encode());
}

TEST_F(StateTest, UsersAndTokensAreAsTheyWereSetLast) {
  Fold(model::UserSet{"ana", "user", {"vision"}, "root"});
  const auto set_ms = now_ms_;
  Fold(model::UserSet{"ana", "admin", {"vision", "speech"}, "root"});
  Fold(model::UserSet{"ben", "viewer", {}, "ana"});
  ASSERT_EQ(state_.users().size(), 2U);
  const auto& ana = state_.users().at("ana");
  EXPECT_EQ(ana.name, "ana");
  EXPECT_EQ(ana.role, "admin");
  EXPECT_EQ(ana.groups, (std::vector<std::string>{"vision", "speech"}));
  EXPECT_EQ(ana.set_ms, set_ms);
  const auto made_ms = now_ms_;
  Fold(model::TokenMade{"t1", "laptop", "ana", "9f86", 5'000, "viewer", "root"});
  const auto& token = state_.tokens().at("t1");
  EXPECT_EQ(token.id, "t1");
  EXPECT_EQ(token.name, "laptop");
  EXPECT_EQ(token.user, "ana");
  EXPECT_EQ(token.hash, "9f86");
  EXPECT_EQ(token.created_ms, made_ms);
  EXPECT_EQ(token.expires_ms, 5'000);
  EXPECT_EQ(token.role, "viewer");
  EXPECT_EQ(token.by, "root");
}

TEST_F(StateTest, ATokenGoesWhenItIsRevokedOrItsUserIsRemoved) {
  for (const char* name : {"ana", "ben"}) Fold(model::UserSet{name, "user", {}, "root"});
  Fold(model::TokenMade{"t1", "laptop", "ana", "1", 0, "", "ana"});
  Fold(model::TokenMade{"t2", "desk", "ana", "2", 0, "", "ana"});
  Fold(model::TokenMade{"t3", "laptop", "ben", "3", 0, "", "ben"});
  Fold(model::TokenRevoked{"t1", "ana"});
  EXPECT_FALSE(state_.tokens().contains("t1"));
  EXPECT_EQ(state_.tokens().size(), 2U);
  Fold(model::UserRemoved{"ana", "root"});
  EXPECT_FALSE(state_.users().contains("ana"));
  ASSERT_EQ(state_.tokens().size(), 1U);
  EXPECT_EQ(state_.tokens().begin()->second.user, "ben");
}

TEST_F(StateTest, AReservationIsAsItWasSetLastUntilItIsRemoved) {
  const model::Reservation first{"demo", "q", 1'000, 9'000, {{"n0", 8}, {"n1", 4}}, "for ana"};
  Fold(model::ReservationSet{first, "ana"});
  const auto made_ms = state_.last_ms();
  auto longer = first;
  longer.to_ms = 20'000;
  Fold(model::ReservationSet{longer, "ben"});
  const auto changed = state_.revision();
  Fold(model::ReservationSet{{"other", "", 5, 6, {{"n2", 1}}, ""}, "ana"});
  auto copy = State::Decode(state_.Encode());
  ASSERT_TRUE(copy.has_value()) << copy.error().message;
  const auto& record = copy->reservations().at("demo");
  EXPECT_EQ(record.reservation, longer);
  EXPECT_EQ(record.by, "ben");
  EXPECT_EQ(record.created_ms, made_ms);
  EXPECT_EQ(record.revision, changed);
  Fold(model::ReservationRemoved{"demo", "q", "musterd", "over"});
  EXPECT_EQ(state_.reservations().size(), 1U);
  EXPECT_TRUE(state_.reservations().contains("other"));
}

// Its first part ended before the two maps, which take a byte each while they are empty.
TEST_F(StateTest, ASnapshotFromBeforeThereWereUsersIsStillRead) {
  const auto job = Submit(kTwo);
  const auto bytes = state_.Encode();
  std::string first;
  model::Unpacker(bytes).Get(first);
  model::Packer old;
  old.Put(first);
  const auto rest = bytes.substr(old.out.size());
  // No users, no tokens, no keys of requests, no policies, no reservations.
  const std::string since("\0\0\2\0\0\0", 6);
  ASSERT_TRUE(first.ends_with(since));
  old.out.clear();
  old.Put(first.substr(0, first.size() - since.size()));
  const auto read = State::Decode(old.out + rest);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_NE(read->Find(job), nullptr);
  EXPECT_TRUE(read->users().empty());
  EXPECT_TRUE(read->tokens().empty());
  EXPECT_TRUE(read->reservations().empty());
  EXPECT_EQ(read->Encode(), bytes);
}

TEST_F(StateTest, ACutSnapshotIsRefused) {
  Submit(kTwo);
  const auto bytes = state_.Encode();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(State::Decode(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
}

TEST_F(StateTest, OldEndedJobsAreForgottenAndLiveOnesNever) {
  const auto live = Submit(kTwo);
  for (std::size_t i = 0; i < kEndedKept + 5; ++i) {
    const auto job = Submit(kTwo);
    Fold(model::JobEnded{job, End::kSucceeded});
  }
  EXPECT_NE(state_.Find(live), nullptr);
  EXPECT_EQ(state_.Find(live + 1), nullptr);
  EXPECT_EQ(state_.jobs().size(), kEndedKept + 1);
}

}  // namespace
}  // namespace muster::state

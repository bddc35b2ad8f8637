#include "control/outlook.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

constexpr std::int64_t kNow = 1'800'000'000'000;

// A node of eight GPUs of each of two types, all of them held.
class OutlookTest : public testing::Test {
 protected:
  OutlookTest() {
    model::Queue queue;
    queue.name = "q";
    Happen(model::QueuesApplied{{queue}, "admin"});
    for (const char* type : {"A100", "H100"}) {
      model::Node node;
      node.name = type;
      node.gpus.resize(8);
      for (auto& gpu : node.gpus) gpu.type = type;
      Happen(model::NodeJoined{node});
      for (int i = 0; i < 8; ++i) Submit({type});
    }
  }

  void Happen(model::EventBody body) { state_.Fold({kNow, std::move(body)}); }
  static model::Job Wanted(std::vector<std::string> types) {
    model::Job job;
    job.name = "job";
    job.queue = "q";
    job.groups.emplace_back().minimum = 1;
    auto& role = job.roles.emplace_back();
    role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    role.gpu_types = std::move(types);
    return job;
  }
  void Submit(std::vector<std::string> types) {
    auto spec = std::make_shared<const model::Job>(Wanted(std::move(types)));
    Happen(model::JobSubmitted{++last_, std::move(spec), "ana", 0, 0, {}, "", 0});
  }
  std::int64_t Likely(std::vector<std::string> types) {
    return Outlook().StartOf(Wanted(std::move(types)), std::nullopt, view_, kNow).likely_ms;
  }

  state::State state_;
  sim::EngineView view_{{}};
  model::JobNumber last_ = 0;
};

TEST_F(OutlookTest, ACrowdedTypeIsNotEstimatedLikeAnother) {
  for (int i = 0; i < 6; ++i) Submit({"A100"});
  ASSERT_TRUE(view_.Build(state_, kNow));
  const auto plan = view_.Cycle(state_, kNow);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->actions.size(), 16U) << "all GPUs are held, and six jobs wait";
  EXPECT_GT(Likely({"A100"}), 4 * Likely({"H100"}));
  EXPECT_LT(Likely({}), Likely({"A100"})) << "who takes either has more to hope for";
}

TEST_F(OutlookTest, ATypeThatIsFreeIsNotWaitedForBehindOthers) {
  Submit({"A100"});
  model::Node node;
  node.name = "free";
  node.gpus.resize(8);
  for (auto& gpu : node.gpus) gpu.type = "L40";
  Happen(model::NodeJoined{node});
  ASSERT_TRUE(view_.Build(state_, kNow));
  ASSERT_TRUE(view_.Cycle(state_, kNow));
  EXPECT_LT(Likely({"L40"}), Likely({"A100"}));
}

// A restart reads the records of those that have ended, and nothing else.
TEST(OutlookHistory, TheErrorOfGuessesIsReadAgainFromTheRecords) {
  const auto spec = [] {
    model::Job job;
    job.name = "fit-1";
    job.queue = "q";
    job.groups.emplace_back().minimum = 1;
    job.roles.emplace_back().count = 1;
    return std::make_shared<const model::Job>(std::move(job));
  }();
  state::State state;
  Outlook before, after;
  for (model::JobNumber id = 1; id <= 6; ++id) {
    const auto guess = before.Runtime(*spec, "ana");
    ASSERT_EQ(guess.has_value(), id > 2);
    state.Fold({kNow, model::JobSubmitted{id,
                                          spec,
                                          "ana",
                                          0,
                                          0,
                                          {},
                                          "",
                                          guess ? guess->likely_ms : 0,
                                          guess ? guess->from : 0}});
    state.Fold({kNow, model::WorkerPlaced{id, 0, 1, "n", 1}});
    state.Fold({kNow + 1, model::WorkerStarted{id, 0, 1, 7, kNow + 1, ""}});
    const auto ran_ms = id < 5 ? 1'000 : 3'000;
    state.Fold({kNow + ran_ms, model::JobEnded{id, model::End::kSucceeded}});
    const auto& job = *state.Find(id);
    before.Ended(job, state);
    const auto read = state::DecodeJobRecord(state::EncodeJobRecord(job));
    ASSERT_TRUE(read.has_value());
    after.Ended(*read, state);
    EXPECT_EQ(before.RuntimeError(job).has_value(), id >= 5);
  }
  const auto& job = *state.Find(6);
  EXPECT_EQ(before.RuntimeError(job)->guesses, 4);
  EXPECT_EQ(before.RuntimeError(job)->factor_milli, after.RuntimeError(job)->factor_milli);
  EXPECT_EQ(before.RuntimeError(job)->guesses, after.RuntimeError(job)->guesses);
}

}  // namespace
}  // namespace muster::control

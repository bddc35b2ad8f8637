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

}  // namespace
}  // namespace muster::control

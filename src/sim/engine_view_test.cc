#include "sim/engine_view.h"

#include <gmock/gmock.h>

#include "base/units.h"

namespace muster::sim {
namespace {

using testing::HasSubstr;

class EngineViewTest : public testing::Test {
 protected:
  EngineViewTest() {
    model::Queue limited;
    limited.name = "limited";
    limited.limit["gpus"] = 2 * kMilli;
    model::Queue leaf;
    leaf.name = "limited/leaf";
    leaf.parent = "limited";
    model::Queue open;
    open.name = "open";
    Happen(model::QueuesApplied{{limited, leaf, open}, "admin"});
  }

  void Happen(model::EventBody body) { state_.Fold({0, std::move(body)}); }
  void AddNode(const std::string& name, const std::string& mark = "",
               const std::string& type = "") {
    model::Node node;
    node.name = name;
    node.gpus.resize(4);
    for (auto& gpu : node.gpus) gpu.type = type;
    if (!mark.empty()) node.labels[mark] = "true";
    Happen(model::NodeJoined{node});
  }
  static const engine::JobState& JobIn(const EngineView& view, model::JobNumber job) {
    return view.cluster().job(view.cluster().FindJob(std::to_string(job)));
  }
  void Build() { ASSERT_TRUE(view_.Build(state_, 0)); }

  static model::Job Wanted(const std::string& queue, int least, int most, int gpus) {
    model::Job job;
    job.name = "x";
    job.queue = queue;
    job.groups.emplace_back().minimum = least;
    auto& role = job.roles.emplace_back();
    role.count = most;
    role.request.gpu = {model::GpuKind::kWhole, gpus, 0, 0};
    return job;
  }
  Error ErrorOf(const model::Job& job) {
    const auto admitted = view_.Admit(job, 0);
    return admitted ? Error{} : admitted.error();
  }
  std::string Refusal(const std::string& queue, int least, int most, int gpus,
                      bool preemptible = true) {
    auto job = Wanted(queue, least, most, gpus);
    job.preemptible = preemptible;
    return ErrorOf(job).message;
  }

  state::State state_;
  EngineView view_{{}};
};

TEST_F(EngineViewTest, AJobBeyondALimitAboveItIsRefusedWithBothNumbers) {
  AddNode("n0");
  Build();
  EXPECT_EQ(Refusal("limited/leaf", 3, 3, 1),
            "job x can never run here: 3 GPUs are asked for at once; queue limited has a limit of "
            "2 GPUs");
  EXPECT_EQ(Refusal("limited/leaf", 2, 8, 1), "") << "only its minimum must be within the limit";
  EXPECT_EQ(Refusal("open", 3, 3, 1), "");
}

TEST_F(EngineViewTest, AJobThatNoNodeCouldTakeIsRefusedWithBothNumbers) {
  AddNode("n0");
  Build();
  EXPECT_EQ(Refusal("open", 1, 1, 8),
            "job x can never run here: 8 GPUs on one node are asked for; the largest node has 4");
  EXPECT_THAT(Refusal("open", 1, 1, 8, false), HasSubstr("the largest node has 4"))
      << "whatever else stops it";
}

TEST_F(EngineViewTest, ARefusalNamesTheKeyAndWhatHelps) {
  AddNode("n0");
  Build();
  EXPECT_EQ(ErrorOf(Wanted("open", 1, 1, 8)).path, "resources.gpus");
  EXPECT_EQ(ErrorOf(Wanted("open", 9, 9, 1)).path, "workers");
  EXPECT_EQ(ErrorOf(Wanted("limited/leaf", 3, 3, 1)).path, "queue");
  auto job = Wanted("open", 1, 1, 1);
  job.nodes["zone"] = "moon";
  EXPECT_EQ(ErrorOf(job).path, "nodes");
  EXPECT_THAT(ErrorOf(job).hint, HasSubstr("labels"));
  job = Wanted("open", 1, 1, 1);
  job.roles[0].gpu_types = {"H100"};
  EXPECT_EQ(ErrorOf(job).path, "gpu_types");
  job = Wanted("open", 1, 1, 1);
  job.roles[0].request.memory_bytes = std::int64_t{1} << 60;
  EXPECT_EQ(ErrorOf(job).path, "resources.memory");
}

TEST_F(EngineViewTest, ACordonedNodeIsNoReasonToRefuse) {
  AddNode("n0");
  Happen(model::NodeMarked{"n0", true, false, "admin"});
  Build();
  EXPECT_EQ(Refusal("open", 1, 1, 4), "");
}

// Two jobs on eight GPUs, of which one says that it is no faster on several.
TEST_F(EngineViewTest, WhatJobsTellOfTheirSpeedDecidesTheirSizes) {
  AddNode("n0");
  AddNode("n1");
  for (const model::JobNumber id : {1U, 2U}) {
    const auto spec = std::make_shared<const model::Job>(Wanted("open", 1, 8, 1));
    Happen(model::JobSubmitted{id, spec, "ada", 0, 0, {}, ""});
  }
  Build();
  const auto happen = [&](std::int64_t at_ms, model::EventBody body) {
    const model::Event event{at_ms, std::move(body)};
    state_.Fold(event);
    view_.Apply(event, state_);
  };
  const auto start = view_.Cycle(state_, 0);
  EXPECT_EQ(start->actions.size(), 8U);
  for (const auto& action : start->actions) {
    const auto id = static_cast<model::JobNumber>(std::stoll(view_.cluster().job(action.job).name));
    happen(0,
           model::WorkerPlaced{id, action.worker, 1, view_.NodeName(action.node), action.devices});
  }
  const auto tell = [&](model::JobNumber job, std::int64_t step_us) {
    happen(1, model::SpeedReported{job, {1, 4, 32, 100'000, step_us, 1'000'000, 32, 256, 32, 32}});
  };
  tell(1, 110'000);
  tell(2, 9'000'000);
  const auto plan = view_.Cycle(state_, 60'000);
  ASSERT_FALSE(plan->empty());
  for (const auto& action : plan->actions) {
    EXPECT_EQ(action.rule, model::Rule::kResize);
    EXPECT_EQ(action.kind, model::ActionKind::kShrink);
  }
  // Built anew from the state, it knows the same.
  EngineView again{{}};
  ASSERT_TRUE(again.Build(state_, 60'000));
  for (const model::JobNumber job : {1U, 2U}) {
    const auto& old_job = JobIn(view_, job);
    const auto& new_job = JobIn(again, job);
    ASSERT_TRUE(old_job.speed && new_job.speed);
    EXPECT_EQ(old_job.speed->models(), new_job.speed->models());
    EXPECT_EQ(old_job.speed->most_gpus(), 4);
    EXPECT_EQ(new_job.served_gpu_ms, 4 * 60'000);
  }
}

TEST_F(EngineViewTest, WhatAJobWasServedIsCountedOnceWhenItIsChanged) {
  AddNode("n0");
  auto spec = std::make_shared<model::Job>(Wanted("open", 1, 1, 1));
  Happen(model::JobSubmitted{1, spec, "ada", 0, 0, {}, ""});
  Happen(model::WorkerPlaced{1, 0, 1, "n0", 1});
  Build();
  view_.Cycle(state_, 0);
  const auto happen = [&](std::int64_t at_ms, model::EventBody body) {
    const model::Event event{at_ms, std::move(body)};
    state_.Fold(event);
    view_.Apply(event, state_);
  };
  auto changed = std::make_shared<model::Job>(*spec);
  changed->priority = 60;
  happen(600'000, model::JobChanged{1, changed, "priority 60", "ada", false});
  view_.Cycle(state_, 600'000);
  happen(660'000,
         model::SpeedReported{1, {1, 4, 32, 100'000, 110'000, 1'000'000, 32, 256, 32, 32}});
  view_.Cycle(state_, 660'000);
  EXPECT_EQ(JobIn(view_, 1).served_gpu_ms, 660'000);
}

// Reports of both types move a job to the one that is faster for it; a replay knows the same.
TEST_F(EngineViewTest, WhatJobsTellOfAGpuTypeDecidesWhichTheyGet) {
  AddNode("n0", "", "A100");
  AddNode("n1", "", "H100");
  const auto spec = std::make_shared<const model::Job>(Wanted("open", 2, 2, 2));
  Happen(model::JobSubmitted{1, spec, "ada", 0, 0, {}, ""});
  Build();
  const auto happen = [&](model::EventBody body) {
    const model::Event event{1, std::move(body)};
    state_.Fold(event);
    view_.Apply(event, state_);
  };
  const auto start = view_.Cycle(state_, 0);
  ASSERT_EQ(start->actions.size(), 2U);
  const auto on = view_.NodeName(start->actions[0].node);
  happen(model::WorkerPlaced{1, 0, 1, on, 3});
  happen(model::WorkerPlaced{1, 1, 1, on, 12});
  for (const auto* type : {"A100", "H100"}) {
    const std::int64_t step_us = (on == "n0") == (std::string(type) == "A100") ? 900'000 : 100'000;
    happen(model::SpeedReported{1, {1, 4, 32, step_us, step_us, 1'000'000, 32, 256, 32, 32, type}});
  }
  const auto plan = view_.Cycle(state_, 3'600'000);
  ASSERT_EQ(plan->actions.size(), 2U);
  for (const auto& action : plan->actions) {
    EXPECT_EQ(action.rule, model::Rule::kResize);
    EXPECT_EQ(action.kind, model::ActionKind::kMove);
  }
  EngineView again{{}};
  ASSERT_TRUE(again.Build(state_, 3'600'000));
  EXPECT_EQ(JobIn(view_, 1).speed->models(), JobIn(again, 1).speed->models());
  EXPECT_EQ(JobIn(again, 1).speed->models().size(), 2U);
}

// A small job holds the node and a more important one waits for it.
TEST_F(EngineViewTest, ThePolicyOfTheStateDecidesFromTheNextCycleOn) {
  AddNode("n0");
  const auto submit = [&](model::JobNumber id, std::int64_t priority) {
    auto job = Wanted("open", 1, 1, 4);
    job.priority = priority;
    Happen(model::JobSubmitted{id, std::make_shared<const model::Job>(job), "ada", 0, 0, {}, ""});
  };
  const auto change = [&](const model::EventBody& body) {
    const model::Event event{1, body};
    state_.Fold(event);
    view_.Apply(event, state_);
  };
  submit(1, 25);
  Build();
  ASSERT_EQ(view_.Cycle(state_, 0)->actions.size(), 1U);
  change(model::WorkerPlaced{1, 0, 1, "n0", 15});
  const model::PolicyApplied gentle{1, "", "", {{"preempt", "off"}}, "root", 0, 0};
  change(gentle);
  submit(2, 75);
  EXPECT_TRUE(view_.Cycle(state_, 1)->empty());
  EXPECT_FALSE(view_.cluster().policy().preempt);
  change(model::PolicyApplied{2, "", "", {}, "root", 1, -1});
  const auto plan = view_.Cycle(state_, 2);
  ASSERT_EQ(plan->actions.size(), 1U);
  EXPECT_EQ(plan->actions[0].kind, model::ActionKind::kPause);
  // Whoever was told to leave leaves, whatever the policy is by then.
  change(model::WorkerLeaving{1, 0, model::StopWhy::kPaused, model::Rule::kFreeCapacity, 2, 0});
  change(gentle);
  EXPECT_TRUE(view_.Cycle(state_, 3)->empty());
  EXPECT_EQ(view_.cluster().worker({view_.cluster().FindJob("1"), 0}).place.state,
            engine::WorkerState::kLeaving);
  model::ExitFacts exit;
  exit.stopped = true;
  change(model::WorkerEnded{1, 0, 1, exit});
  const auto next = view_.Cycle(state_, 4);
  ASSERT_EQ(next->actions.size(), 1U);
  EXPECT_EQ(view_.NumberOf(next->actions[0].job), 2U);
}

TEST_F(EngineViewTest, APolicyOfTheStateReplacesTheOneItWasMadeWith) {
  engine::Policy own;
  own.grow = false;
  own.shrink = false;
  const EngineView view({own, {}});
  EXPECT_FALSE(view.PolicyOf(state_).grow);
  Happen(model::PolicyApplied{1, "", "", {{"grow", "off"}}, "root", 0, 0});
  EXPECT_FALSE(view.PolicyOf(state_).grow);
  EXPECT_TRUE(view.PolicyOf(state_).shrink);
}

TEST_F(EngineViewTest, TheEngineKnowsTheReservationsThatStandByName) {
  AddNode("n0");
  const model::Reservation late{"late", "open", 5'000, 9'000, {{"n0", 4}}, ""};
  const model::Reservation early{"early", "", 10, 1'000, {{"n0", 2}}, ""};
  Happen(model::ReservationSet{late, "admin"});
  Build();
  EXPECT_THAT(view_.cluster().reservations(), testing::ElementsAre(late));
  const auto apply = [&](model::EventBody body) {
    const model::Event event{1, std::move(body)};
    state_.Fold(event);
    view_.Apply(event, state_);
  };
  apply(model::ReservationSet{early, "admin"});
  EXPECT_THAT(view_.cluster().reservations(), testing::ElementsAre(early, late));
  EngineView again{{}};
  ASSERT_TRUE(again.Build(state_, 1));
  EXPECT_EQ(again.cluster().reservations(), view_.cluster().reservations());
  // Nobody else has room until it is over.
  const auto spec = std::make_shared<const model::Job>(Wanted("limited/leaf", 1, 1, 1));
  apply(model::JobSubmitted{1, spec, "ada", 0, 0, {}, ""});
  EXPECT_TRUE(view_.Cycle(state_, 6'000)->empty());
  apply(model::ReservationRemoved{"late", "open", "musterd", "over"});
  EXPECT_THAT(view_.cluster().reservations(), testing::ElementsAre(early));
  EXPECT_EQ(view_.Cycle(state_, 6'000)->actions.size(), 1U);
}

TEST_F(EngineViewTest, APoolIsMarkedWhereNoNodeIsReal) {
  Build();
  EXPECT_FALSE(view_.AllMarked("virtual")) << "there are no nodes";
  AddNode("n0", "virtual");
  AddNode("n1", "simulated");
  Build();
  EXPECT_TRUE(view_.AllMarked("virtual"));
  EXPECT_TRUE(view_.AllMarked("simulated"));
  AddNode("n2");
  Build();
  EXPECT_FALSE(view_.AllMarked("virtual"));
}

}  // namespace
}  // namespace muster::sim

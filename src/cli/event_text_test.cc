#include "cli/event_text.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>

#include "model/document_writer.h"
#include "model/event.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

// The event as the API shows it.
Json Shown(const model::EventBody& body) {
  return {{"kind", model::KindOf(body)},
          {"facts", Json::parse(model::WriteJson(model::EventToNode(body)))}};
}

template <std::size_t I = 0>
void ForEveryKind(const std::function<void(const model::EventBody&)>& look) {
  if constexpr (I < std::variant_size_v<model::EventBody>) {
    look(model::EventBody(std::in_place_index<I>));
    ForEveryKind<I + 1>(look);
  }
}

TEST(EventText, EveryKindIsASentenceWithoutJsonOrKeys) {
  ForEveryKind([](const model::EventBody& body) {
    const auto shown = Shown(body);
    const auto said = SentenceOf(shown);
    EXPECT_GE(said.size(), 4U) << shown.dump();
    EXPECT_EQ(said.find_first_of("{}[]\"_"), std::string::npos) << said;
  });
}

TEST(EventText, ANodeIsToldByWhatItHas) {
  model::NodeJoined joined;
  joined.node.name = "lab-0";
  joined.node.pool = "lab";
  joined.node.cpu_milli = 32'000;
  joined.node.memory_bytes = std::int64_t{256} << 30;
  joined.node.gpus.resize(4);
  for (auto& gpu : joined.node.gpus) gpu.type = "H100";
  EXPECT_EQ(SentenceOf(Shown(joined)),
            "node lab-0 joined pool lab: 4 H100, 32 cores, 256Gi of memory");
}

TEST(EventText, ASubmissionDoesNotShowTheKeyOfItsRequest) {
  model::JobSubmitted submitted;
  submitted.job = 3;
  submitted.user = "ana";
  submitted.key = "cli-12-34-56#0";
  auto spec = std::make_shared<model::Job>();
  spec->queue = "vision";
  submitted.spec = spec;
  submitted.follows = {{1, model::AfterCondition::kOk}};
  EXPECT_EQ(SentenceOf(Shown(submitted)), "submitted by ana to queue vision, to follow job 1");
}

TEST(EventText, EndsSayWhatDecidedThem) {
  model::JobEnded ended{5, model::End::kFailed, model::StopWhy::kNone, 2, {}};
  ended.exit.exit_code = 3;
  EXPECT_EQ(SentenceOf(Shown(ended)), "failed: worker 2 exited with 3");
  ended.why = model::StopWhy::kTimeLimit;
  EXPECT_EQ(SentenceOf(Shown(ended)), "failed: its time was over");
  const model::WorkerPlaced placed{5, 1, 1, "lab-0", 0, model::ActionKind::kStart};
  auto shown = Shown(placed);
  EXPECT_EQ(SentenceOf(shown), "worker 1 gets a place on node lab-0");
  shown["facts"]["devices"] = {1, 3};
  EXPECT_EQ(SentenceOf(shown), "worker 1 gets GPUs 1,3 of node lab-0");
  shown["facts"]["devices"] = {63};
  EXPECT_EQ(SentenceOf(shown), "worker 1 gets GPU 63 of node lab-0");
  const model::WorkerLeaving leaving{5, 1, model::StopWhy::kPaused, model::Rule::kReclaimQuota,
                                     9, -1};
  EXPECT_EQ(SentenceOf(Shown(leaving)),
            "worker 1 leaves: paused by the scheduler, rule reclaim-quota, for job 9");
}

TEST(EventText, APolicySaysWhatItStates) {
  model::PolicyApplied applied{2, "", "", {{"grow", "off"}, {"move_limit", "any"}}, "root", 0, 1};
  EXPECT_EQ(SentenceOf(Shown(applied)), "policy applied by root: grow off, move_limit any");
  applied = {3, "gentle", "", {}, "root", 2, -1};
  EXPECT_EQ(SentenceOf(Shown(applied)), "policy 2 undone by root: as by default");
}

TEST(EventText, AnExplanationSaysNothingTwice) {
  const auto told = [](const char* phase, const char* sentence) {
    const auto got = TellWhy("job 7 x", {{"phase", phase}, {"sentence", sentence}});
    return got.before + got.phase + got.after;
  };
  EXPECT_EQ(told("held", "it is held; `muster release 7` lets it go"),
            "job 7 x is held; `muster release 7` lets it go");
  EXPECT_EQ(told("suspended", "it is suspended; `muster resume 7` lets it go on"),
            "job 7 x is suspended; `muster resume 7` lets it go on");
  EXPECT_EQ(told("waiting", "there is no room"), "job 7 x is waiting: there is no room");
  EXPECT_EQ(told("succeeded", "all of its 2 tasks have ended"),
            "job 7 x has succeeded: all of its 2 tasks have ended");
  EXPECT_EQ(told("failed", "it has ended: worker 0 exited with 1"),
            "job 7 x has failed: worker 0 exited with 1");
  EXPECT_EQ(told("cancelled", "it has ended: cancelled by ana"),
            "job 7 x was cancelled: cancelled by ana");
}

TEST(EventText, WhatIsNewAndUnknownIsToldByItsPlainFacts) {
  EXPECT_EQ(SentenceOf({{"kind", "moon-rose"}, {"facts", {{"at_hour", 3}, {"key", "secret"}}}}),
            "at_hour 3");
}

}  // namespace
}  // namespace muster::cli

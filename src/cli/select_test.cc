#include "cli/select.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

Json Nodes() {
  return Json::parse(R"([
    {"name": "a", "state": "ready", "gpus": 8, "labels": {"rack": "r1"}},
    {"name": "b", "state": "down", "gpus": 16, "labels": {"rack": "r2"}},
    {"name": "c", "state": "ready", "gpus": 4, "labels": {}}])");
}

std::string Names(const Selection& selection) {
  auto list = Nodes();
  const auto done = Select(list, selection);
  if (!done) return done.error().message;
  std::string names;
  for (const auto& item : list) names += item.at("name").get<std::string>();
  return names;
}

TEST(Select, AllConditionsMustHold) {
  EXPECT_EQ(Names({"state=ready", "", 0}), "ac");
  EXPECT_EQ(Names({"state=ready,gpus>=8", "", 0}), "a");
  EXPECT_EQ(Names({"state!=ready", "", 0}), "b");
  EXPECT_EQ(Names({"name~b", "", 0}), "b");
  EXPECT_EQ(Names({"labels.rack=r1", "", 0}), "a");
  EXPECT_EQ(Names({"labels.rack>=r1", "", 0}), "ab");
  EXPECT_EQ(Names({"gpus<8", "", 0}), "c");
}

TEST(Select, NumbersAreOrderedBySizeAndAMinusTurnsTheOrderRound) {
  EXPECT_EQ(Names({"", "gpus", 0}), "cab");
  EXPECT_EQ(Names({"", "-gpus", 0}), "bac");
  EXPECT_EQ(Names({"", "-name", 2}), "cb");
}

TEST(Select, WhatNoItemHasIsSaidWithWhatTheyHave) {
  auto list = Nodes();
  const auto done = Select(list, {"", "colour", 0});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kUsage);
  EXPECT_EQ(done.error().hint, "it has: name, state, gpus, labels");
  EXPECT_FALSE(Select(list, {"colour=red", "", 0}));
}

TEST(Select, AWordThatIsNoConditionIsRefused) {
  EXPECT_EQ(Names({"ready", "", 0}), "--filter: \"ready\" is no condition");
  EXPECT_EQ(Names({"=ready", "", 0}), "--filter: \"=ready\" is no condition");
  Json none = Json::array();
  EXPECT_FALSE(Select(none, {"ready", "", 0}));
  EXPECT_TRUE(Select(none, {"state=ready", "gpus", 1}));
}

}  // namespace
}  // namespace muster::cli

#include "cli/audit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::cli {
namespace {

using Json = nlohmann::json;

TEST(Audit, OnlyWhatDiffersIsShown) {
  const auto [before, after] = Difference(
      Json::parse(R"({"name": "vision", "quota": {"gpus": 2, "H100": 1}, "weight": 1})"),
      Json::parse(R"({"name": "vision", "quota": {"gpus": 3}, "weight": 1, "groups": ["a"]})"));
  EXPECT_EQ(before, "quota.H100 1, quota.gpus 2");
  EXPECT_EQ(after, "groups [\"a\"], quota.gpus 3");
}

TEST(Audit, WhatWasMadeOrRemovedHasOneSideOnly) {
  const auto [before, after] = Difference(nullptr, {{"name", "new"}});
  EXPECT_EQ(before, "");
  EXPECT_EQ(after, "name new");
}

TEST(Audit, ObjectsInAListAreToldByTheirNames) {
  const auto [before, after] = Difference(Json::parse(R"([{"name": "a", "gpus": 1}])"),
                                          Json::parse(R"([{"name": "a", "gpus": 2}])"));
  EXPECT_EQ(before, "gpus 1");
  EXPECT_EQ(after, "gpus 2");
  EXPECT_EQ(
      Difference(nullptr, Json::parse(R"([{"name": "a", "x": 1}, {"name": "b", "x": 2}])")).second,
      "a.name a, a.x 1, b.name b, b.x 2");
}

TEST(Audit, OperationsThatAreWrittenDownAreThoseOfTheDocument) {
  const auto document = nlohmann::json::parse(
      R"({"components": {"schemas": {"Change": {"enum": ["submitJobs", "execJob"]}}}})");
  EXPECT_EQ(AuditedOperations(document), (std::vector<std::string>{"submitJobs", "execJob"}));
  EXPECT_TRUE(AuditedOperations(nullptr).empty());
}

}  // namespace
}  // namespace muster::cli

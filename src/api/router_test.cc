#include "api/router.h"

#include <gmock/gmock.h>

#include <set>

namespace muster::api {
namespace {

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() : router_(Router::Make(OpenApiText())) {
    EXPECT_TRUE(router_) << Describe(router_.error());
  }
  std::string Id(const std::string& method, const std::string& path) {
    auto match = router_->Find(method, path);
    return match ? match->operation->id : Describe(match.error());
  }
  Error Refused(const std::string& path, std::map<std::string, std::string> query) {
    net::Request request;
    request.query = std::move(query);
    const auto match = router_->Find("GET", path);
    EXPECT_TRUE(match);
    const auto checked = Router::Check(*match->operation, request);
    EXPECT_FALSE(checked);
    return checked ? Error{} : checked.error();
  }

  Result<Router> router_;
};

TEST_F(RouterTest, FindsCallsByPathMethodAndVerb) {
  EXPECT_EQ(Id("GET", "/jobs"), "listJobs");
  EXPECT_EQ(Id("POST", "/jobs"), "submitJobs");
  EXPECT_EQ(Id("GET", "/jobs/17"), "getJob");
  EXPECT_EQ(Id("POST", "/jobs/17:cancel"), "cancelJob");
  EXPECT_EQ(Id("GET", "/jobs/a/logs"), "readLogs");
  EXPECT_EQ(router_->Find("POST", "/jobs/a:b:cancel")->path.at("job"), "a:b");
}

TEST_F(RouterTest, ANameOfAQueueMaySpanSlashes) {
  const auto match = router_->Find("GET", "/queues/vision/detection");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->operation->id, "getQueue");
  EXPECT_EQ(match->path.at("queue"), "vision/detection");
}

TEST_F(RouterTest, WhatIsNotDocumentedIsNotThere) {
  EXPECT_EQ(router_->Find("GET", "/jobs/1/secrets").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(router_->Find("GET", "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(router_->Find("POST", "/jobs/1:explode").error().code, ErrorCode::kNotFound);
  const auto wrong = router_->Find("DELETE", "/jobs");
  EXPECT_EQ(wrong.error().code, ErrorCode::kUsage);
  EXPECT_EQ(wrong.error().hint, "GET, HEAD, POST");
}

TEST_F(RouterTest, AnEmptyWordInAPathIsNowhere) {
  for (const char* path : {"/jobs/", "//jobs", "/jobs//1", "/", "/queues/a//b", "/queues/a/"}) {
    const auto found = router_->Find("GET", path);
    ASSERT_FALSE(found) << path;
    EXPECT_EQ(found.error().code, ErrorCode::kNotFound) << path;
  }
  EXPECT_EQ(router_->Find("POST", "/jobs/1/:cancel").error().code, ErrorCode::kNotFound);
}

TEST_F(RouterTest, HeadGoesWhereGetGoes) {
  EXPECT_EQ(Id("HEAD", "/jobs/17"), "getJob");
  EXPECT_EQ(router_->Find("HEAD", "/plan").error().hint, "POST");
  EXPECT_EQ(router_->Find("HEAD", "/jobs/17/attach").error().hint, "GET") << "it is a WebSocket";
}

TEST_F(RouterTest, ParametersAreCheckedAgainstTheDocument) {
  EXPECT_EQ(Refused("/jobs", {{"colour", "red"}}).path, "colour");
  EXPECT_EQ(Refused("/jobs", {{"limit", "0"}}).path, "limit");
  EXPECT_EQ(Refused("/jobs", {{"limit", "many"}}).path, "limit");
  EXPECT_EQ(Refused("/jobs", {{"sort", "colour"}}).path, "sort");
  EXPECT_EQ(Refused("/jobs", {{"all", "perhaps"}}).path, "all");
  EXPECT_EQ(Refused("/jobs", {{"phase", "sleeping"}}).path, "phase");
  EXPECT_EQ(Refused("/jobs/1/forward", {}).path, "port");
  EXPECT_EQ(Refused("/jobs/1/logs", {{"worker", "-1"}}).path, "worker");
}

TEST_F(RouterTest, EveryCallHasARoleAndANameOfItsOwn) {
  std::set<std::string> names;
  for (const auto& operation : router_->operations()) {
    EXPECT_FALSE(operation.id.empty());
    EXPECT_TRUE(names.insert(operation.id).second) << operation.id;
    for (const auto& word : operation.words) {
      if (!word.starts_with('{')) continue;
      const auto name = word.substr(1, word.size() - 2);
      EXPECT_THAT(operation.parameters,
                  ::testing::Contains(::testing::Field(&Parameter::name, name)))
          << operation.id;
    }
  }
}

}  // namespace
}  // namespace muster::api

#include "api/listing.h"

#include <gtest/gtest.h>

#include "model/document_writer.h"

namespace muster::api {
namespace {

class ListingTest : public ::testing::Test {
 protected:
  const state::JobRecord& Add(model::JobNumber id, const std::string& name, std::int64_t priority,
                              int gpus) {
    auto spec = std::make_shared<model::Job>();
    spec->name = name;
    spec->queue = "q";
    spec->priority = priority;
    spec->labels["team"] = name.substr(0, 1);
    auto& role = spec->roles.emplace_back();
    role.count = 1;
    if (gpus > 0) {
      role.request.gpu.kind = model::GpuKind::kWhole;
      role.request.gpu.devices = gpus;
    }
    auto job = std::make_unique<state::JobRecord>();
    job->id = id;
    job->user = "ana";
    job->spec = spec;
    return *jobs_.emplace_back(std::move(job));
  }
  bool Is(const std::string& filter, const state::JobRecord& job) {
    auto conditions = ParseFilter(filter);
    EXPECT_TRUE(conditions) << filter;
    return conditions && Holds(*conditions, job);
  }
  std::vector<std::unique_ptr<state::JobRecord>> jobs_;
};

TEST_F(ListingTest, ConditionsCompareTextsAndNumbers) {
  const auto& job = Add(7, "resnet", 50, 4);
  EXPECT_TRUE(Is("", job));
  EXPECT_TRUE(Is("name=resnet,gpus>=4", job));
  EXPECT_FALSE(Is("name=resnet,gpus>4", job));
  EXPECT_TRUE(Is("name~esn,user!=ben,priority<=50,id<8", job));
  EXPECT_TRUE(Is("labels.team=r", job));
  EXPECT_FALSE(Is("labels.nothing=r", job));
  EXPECT_TRUE(Is("phase=waiting", job));
}

TEST_F(ListingTest, KeysAreThoseThatAJobShows) {
  auto& job = const_cast<state::JobRecord&>(Add(7, "resnet", 50, 4));
  job.submitted_ms = 1'767'225'600'000;  // 2026-01-01
  job.revision = 12;
  EXPECT_TRUE(Is("status.phase=waiting,phase=waiting,status.gpus_asked=4,gpus_asked=4", job));
  EXPECT_TRUE(Is("status.gpus=0,status.workers_running=0,workers_max=1,revision>=12", job));
  EXPECT_FALSE(Is("status.gpus=4", job)) << "it holds none";
  EXPECT_TRUE(Is("created_at>=2026-01-01,created_at<2026-01-01T00:00:01", job));
  EXPECT_TRUE(Is("created_at=2026-01-01T00:00:00.000Z", job));
  EXPECT_FALSE(Is("created_at<2026-01-01T00:00:00Z", job));
  EXPECT_FALSE(Is("started_at>=2020-01-01", job)) << "it has not started";
  EXPECT_FALSE(Is("started_at<2030-01-01", job));
  job.array = 5;
  job.array_index = 1;
  EXPECT_TRUE(Is("array=5,array_index>=1", job));
  const auto unknown = ParseFilter("status.colour=red");
  EXPECT_NE(unknown.error().hint.find("status.phase"), std::string::npos);
  EXPECT_NE(unknown.error().hint.find("created_at"), std::string::npos);
}

// The document lists what can be asked, and what it lists can be asked.
TEST_F(ListingTest, EveryKeyOfTheHintIsInTheDocument) {
  const auto text = OpenApiText();
  const auto at = text.find("    job_filter:");
  const auto told = text.substr(at, text.find("    dry_run:", at) - at);
  const auto hint = ParseFilter("colour=red").error().hint;
  std::size_t keys = 0;
  for (std::size_t from = hint.find(": ") + 2, to = 0; to < hint.find(';'); from = to + 2) {
    to = std::min(hint.find(", ", from), hint.find(';'));
    EXPECT_NE(told.find(hint.substr(from, to - from)), std::string::npos)
        << hint.substr(from, to - from);
    ++keys;
  }
  EXPECT_GT(keys, 15U);
}

TEST_F(ListingTest, WhatIsNoConditionIsRefused) {
  for (const char* wrong : {"gpus", "=3", "colour=red", "gpus=many", "name>3", "gpus~3", "name!x",
                            "labels.=x", "phase=done", "kind!=banana", "created_at=soon",
                            "created_at~2026", "created_at>=2026-13-01", "status.name=x"}) {
    const auto parsed = ParseFilter(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().path, "filter");
  }
}

TEST_F(ListingTest, ACursorIsThePlaceOfTheLastJob) {
  const auto& job = Add(7, "res.net", 50, 4);
  const auto name = ParseCursor(CursorOf(ParseOrder("name"), job), ParseOrder("name"));
  ASSERT_TRUE(name && *name);
  EXPECT_EQ((*name)->job, 7U);
  EXPECT_EQ(std::get<std::string>((*name)->value), "res.net");
  const auto gpus = ParseCursor(CursorOf(ParseOrder("-gpus"), job), ParseOrder("-gpus"));
  ASSERT_TRUE(gpus && *gpus);
  EXPECT_EQ(std::get<std::int64_t>((*gpus)->value), 4'000);
  EXPECT_FALSE(ParseCursor("", ParseOrder("name")).value());
  EXPECT_EQ(ParseCursor(CursorAt(7), ParseOrder("")).value()->job, 7U);
}

TEST_F(ListingTest, ACursorOfAnotherListIsRefused) {
  const auto other = CursorOf(ParseOrder("-gpus"), Add(7, "x", 50, 4));
  for (const auto& wrong : {std::string("nonsense"), std::string("ga1.abc"), std::string("ga-1.5"),
                            std::string("ga1"), std::string("."), std::string("1.5"), other}) {
    const auto parsed = ParseCursor(wrong, ParseOrder("gpus"));
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().path, "cursor");
  }
}

TEST_F(ListingTest, PicksKeysAndKeysInside) {
  auto node = model::MapNode();
  Put(node, "id", model::TextNode("1"));
  Put(node, "name", model::TextNode("x"));
  auto& status = Put(node, "status", model::MapNode());
  Put(status, "phase", model::TextNode("running"));
  Put(status, "gpus", model::NumberNode(2));
  Put(status, "more", model::NumberNode(3));
  const auto picked = Pick(node, "id,status.phase,status.gpus,nothing");
  ASSERT_EQ(picked.children.size(), 2U);
  EXPECT_EQ(picked.Find("status")->children.size(), 2U);
  EXPECT_EQ(picked.Find("status")->Find("phase")->text, "running");
}

}  // namespace
}  // namespace muster::api

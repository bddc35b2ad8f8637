#include "api/listing.h"

#include <gmock/gmock.h>

#include "model/document_writer.h"

namespace muster::api {
namespace {

using ::testing::ElementsAre;

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
  std::vector<model::JobNumber> Pages(const std::string& sort, std::size_t limit) {
    std::vector<model::JobNumber> ids;
    const auto order = ParseOrder(sort);
    for (std::string cursor;;) {
      std::vector<Entry> entries;
      for (const auto& job : jobs_) entries.push_back({KeyOf(order, *job), job.get()});
      auto page = Page(std::move(entries), order, cursor, limit);
      EXPECT_TRUE(page);
      if (!page || page->empty()) return ids;
      for (const auto& entry : *page) ids.push_back(entry.job->id);
      cursor = CursorOf(page->back());
    }
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

TEST_F(ListingTest, WhatIsNoConditionIsRefused) {
  for (const char* wrong :
       {"gpus", "=3", "colour=red", "gpus=many", "name>3", "gpus~3", "name!x", "labels.=x"}) {
    const auto parsed = ParseFilter(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().path, "filter");
  }
}

TEST_F(ListingTest, PagesShowEveryJobOnceInOrder) {
  Add(1, "b", 50, 1);
  Add(2, "a", 75, 0);
  Add(3, "b", 50, 2);
  Add(4, "c", 25, 1);
  Add(5, "a", 75, 1);
  for (const std::size_t limit : {1U, 2U, 10U}) {
    EXPECT_THAT(Pages("", limit), ElementsAre(5, 4, 3, 2, 1));
    EXPECT_THAT(Pages("id", limit), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_THAT(Pages("name", limit), ElementsAre(2, 5, 1, 3, 4));
    EXPECT_THAT(Pages("-priority", limit), ElementsAre(5, 2, 3, 1, 4));
    EXPECT_THAT(Pages("gpus", limit), ElementsAre(2, 1, 4, 5, 3));
  }
}

TEST_F(ListingTest, ACursorOfAnotherListIsRefused) {
  Add(1, "a", 50, 1);
  std::vector<Entry> entries;
  EXPECT_FALSE(Page(entries, ParseOrder("gpus"), "nonsense", 10));
  EXPECT_FALSE(Page(entries, ParseOrder("gpus"), "1.abc", 10));
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

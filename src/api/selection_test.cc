#include "api/selection.h"

#include <gtest/gtest.h>

#include "api/listing.h"
#include "model/document_writer.h"
#include "model/event.h"

namespace muster::api {
namespace {

using model::DocNode;

template <std::size_t... I>
std::vector<model::EventBody> Samples(std::index_sequence<I...>) {
  return {model::EventBody(std::in_place_index<I>)...};
}

class SelectionTest : public ::testing::Test {
 protected:
  static std::vector<DocNode> Nodes() {
    model::Problems problems;
    auto documents = model::ParseDocuments(R"([
      {"id": "n2", "spec": {"gpus_total": 8, "cpus": "unlimited"}, "labels": {"rack.b": "r1"},
       "status": {"phase": "ready"}, "created_at": "2026-01-02T00:00:00.000Z"},
      {"id": "n10", "spec": {"gpus_total": 16, "cordoned": true}, "labels": {"rack.b": "r2"},
       "status": {"phase": "down"}, "created_at": "2026-01-03T00:00:00.000Z"},
      {"id": "n1", "spec": {"gpus_total": 8, "cpus": 2.5}, "status": {"phase": "ready"}}])",
                                           problems);
    EXPECT_FALSE(problems.HasErrors());
    return documents.at(0).children;
  }
  const Operation& Of(const std::string& path) { return *router_->Find("GET", path)->operation; }
  Result<DocNode> Page(const Selection::Wish& wish) {
    auto selection = Selection::Make(Of("/nodes"), wish);
    if (!selection) return tl::unexpected(selection.error());
    return selection->Page(Nodes(), 7);
  }
  std::string Ids(const Selection::Wish& wish) {
    const auto page = Page(wish);
    if (!page) return page.error().path + ": " + page.error().message;
    std::string ids;
    for (const auto& item : page->Find("nodes")->children) ids += item.Find("id")->text + " ";
    return ids;
  }

  Result<Router> router_ = Router::Make(OpenApiText());
};

TEST_F(SelectionTest, AllConditionsMustHoldAndStatusAndSpecMayBeLeftOut) {
  EXPECT_EQ(Ids({.filter = "status.phase=ready"}), "n1 n2 ");
  EXPECT_EQ(Ids({.filter = "phase=ready,gpus_total>=8,name!=x"}), "n1 n2 ");
  EXPECT_EQ(Ids({.filter = "id~0"}), "n10 ");
  EXPECT_EQ(Ids({.filter = "phase!=ready"}), "n10 ");
  EXPECT_EQ(Ids({.filter = "gpus_total>8"}), "n10 ");
  EXPECT_EQ(Ids({.filter = "cpus>1000"}), "n2 ");
  EXPECT_EQ(Ids({.filter = "cordoned=false"}), "n1 n2 ");
  EXPECT_EQ(Ids({.filter = "labels.rack.b=r1"}), "n2 ");
  EXPECT_EQ(Ids({.filter = "created_at>=2026-01-03"}), "n10 ");
}

TEST_F(SelectionTest, NumbersAreOrderedBySizeAndEqualOnesById) {
  EXPECT_EQ(Ids({}), "n1 n2 n10 ");
  EXPECT_EQ(Ids({.sort = "gpus_total"}), "n1 n2 n10 ");
  EXPECT_EQ(Ids({.sort = "-gpus_total"}), "n10 n1 n2 ");
  EXPECT_EQ(Ids({.sort = "cpus"}), "n10 n1 n2 ");
  EXPECT_EQ(Ids({.sort = "-id", .limit = 2}), "n10 n2 ");
}

TEST_F(SelectionTest, PagesShowEachItemOnceInTheOrderOfTheWhole) {
  for (const std::string sort : {"", "-id", "gpus_total", "-gpus_total", "cpus", "labels.rack.b"}) {
    const auto whole = Ids({.sort = sort});
    std::string walked;
    Selection::Wish wish{.sort = sort, .limit = 1};
    for (int pages = 0; pages < 4; ++pages) {
      const auto page = Page(wish);
      ASSERT_TRUE(page);
      walked += page->Find("nodes")->children.at(0).Find("id")->text + " ";
      EXPECT_EQ(page->Find("revision")->text, "7");
      const auto* next = page->Find("next");
      if (next == nullptr) break;
      wish.cursor = next->text;
    }
    EXPECT_EQ(walked, whole) << sort;
  }
}

TEST_F(SelectionTest, APageByIdMakesItsOwnItemsOnly) {
  const auto nodes = Nodes();
  std::size_t made = 0;
  const auto page = [&](const Selection::Wish& wish) {
    made = 0;
    std::vector<std::string> ids;
    ids.reserve(nodes.size());
    for (const auto& node : nodes) ids.push_back(node.Find("id")->text);
    const auto selection = Selection::Make(Of("/nodes"), wish);
    return *selection->Page(Items(ids,
                                  [&](std::size_t at) {
                                    ++made;
                                    return nodes[at];
                                  }),
                            7);
  };
  const auto first = page({.limit = 1});
  EXPECT_EQ(made, 2U) << "and one to see whether there is more";
  const auto second = page({.cursor = first.Find("next")->text, .limit = 1});
  EXPECT_EQ(second.Find("nodes")->children.at(0).Find("id")->text, "n2");
  const auto third = page({.cursor = second.Find("next")->text, .limit = 1});
  EXPECT_EQ(third.Find("nodes")->children.at(0).Find("id")->text, "n10");
  EXPECT_EQ(third.Find("next"), nullptr);
  EXPECT_EQ(page({.sort = "-id", .limit = 1}).Find("nodes")->children.at(0).Find("id")->text,
            "n10");
  EXPECT_EQ(page({.filter = "phase=down", .limit = 1}).Find("nodes")->children.size(), 1U);
  EXPECT_EQ(made, 3U);
}

TEST_F(SelectionTest, WhatMakesNoSenseIsRefusedWithWhatDoes) {
  const auto unknown = Page({.filter = "colour=red"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().path, "filter");
  EXPECT_NE(unknown.error().hint.find("spec.pool"), std::string::npos) << unknown.error().hint;
  EXPECT_NE(unknown.error().hint.find("labels.KEY"), std::string::npos);
  EXPECT_EQ(Page({.sort = "colour"}).error().path, "sort");
  for (const char* filter : {"ready", "=x", "id!", "phase>=ready", "gpus_total~8", "gpus_total=x",
                             "cordoned>=true", "cordoned=perhaps", "labels=x"}) {
    const auto page = Page({.filter = filter});
    ASSERT_FALSE(page) << filter;
    EXPECT_EQ(page.error().path, "filter") << filter;
    EXPECT_EQ(page.error().code, ErrorCode::kUsage);
  }
  const auto next = Page({.limit = 1})->Find("next")->text;
  EXPECT_EQ(Page({.cursor = "zz"}).error().path, "cursor");
  EXPECT_EQ(Page({.cursor = "12"}).error().path, "cursor");
  EXPECT_EQ(Page({.sort = "-id", .cursor = next}).error().path, "cursor") << "of another order";
}

TEST_F(SelectionTest, OnlyTheFieldsThatAreWantedAreShown) {
  const auto page = Page({.filter = "id=n2", .sort = "gpus_total", .fields = "id,status.phase"});
  ASSERT_TRUE(page);
  EXPECT_EQ(model::WriteJson(page->Find("nodes")->children.at(0)),
            "{\n  \"id\": \"n2\",\n  \"status\": {\n    \"phase\": \"ready\"\n  }\n}\n");
}

TEST_F(SelectionTest, AFieldThatIsNotKnownIsRefusedWithThoseThatAre) {
  for (const char* fields :
       {"colour", "id,status.colour", "status.phase.more", "labelsx", "id,,name"}) {
    const auto page = Page({.fields = fields});
    ASSERT_FALSE(page) << fields;
    EXPECT_EQ(page.error().path, "fields") << fields;
    EXPECT_EQ(page.error().code, ErrorCode::kUsage);
    EXPECT_NE(page.error().hint.find("status.phase"), std::string::npos) << page.error().hint;
    EXPECT_NE(page.error().hint.find("labels[.KEY]"), std::string::npos) << page.error().hint;
  }
  for (const char* fields :
       {"", "status", "labels", "labels.rack.b", "spec.nics", "spec.gpus.H100"}) {
    EXPECT_TRUE(Page({.fields = fields})) << fields;
  }
  const auto label = Page({.filter = "id=n2", .fields = "labels.rack.b"});
  EXPECT_EQ(label->Find("nodes")->children.at(0).Find("labels")->children.at(0).text, "r1");
}

TEST_F(SelectionTest, WhatOnlyOneObjectShowsIsNoFieldOfAList) {
  EXPECT_TRUE(CheckFields(Of("/jobs/1"), "spec,spec.gpus,status.workers"));
  EXPECT_FALSE(CheckFields(Of("/jobs"), "spec"));
  EXPECT_FALSE(CheckFields(Of("/jobs"), "status.workers"));
  EXPECT_TRUE(CheckFields(Of("/jobs"), "id,status.preemption.at"));
}

TEST_F(SelectionTest, OfAListOneItemMustMeetTheCondition) {
  model::Problems problems;
  const auto gpus = model::ParseDocuments(R"([
      {"id": "n/0", "status": {"jobs": [{"id": "1", "user": "ana"}, {"id": "2", "user": "ben"}]}},
      {"id": "n/1", "status": {"jobs": [{"id": "2", "user": "ben"}]}},
      {"id": "n/2", "status": {"jobs": []}}])",
                                          problems)
                        .at(0)
                        .children;
  const auto ids = [&](const std::string& filter) {
    const auto selection = Selection::Make(Of("/gpus"), {.filter = filter});
    if (!selection) return selection.error().path;
    std::string list;
    const auto page = selection->Page(gpus, 7);
    for (const auto& item : page->Find("gpus")->children) {
      list += item.Find("id")->text + " ";
    }
    return list;
  };
  EXPECT_EQ(ids("status.jobs.user=ana"), "n/0 ");
  EXPECT_EQ(ids("jobs.id=2"), "n/0 n/1 ");
  EXPECT_EQ(ids("jobs.user!=ana"), "n/1 n/2 ");
  EXPECT_EQ(ids("jobs.user~e"), "n/0 n/1 ");
  EXPECT_EQ(ids("jobs.colour=red"), "filter");
  EXPECT_FALSE(Selection::Make(Of("/gpus"), {.sort = "jobs.user"})) << "which of them would count?";
}

TEST_F(SelectionTest, NamesStandAsPeopleCount) {
  EXPECT_LT(NaturalOrder("n2", "n10"), 0);
  EXPECT_LT(NaturalOrder("a", "a/b"), 0);
  EXPECT_LT(NaturalOrder("a/b", "a-b"), 0);
  EXPECT_GT(NaturalOrder("n02x", "n2"), 0);
  EXPECT_NE(NaturalOrder("n02", "n2"), 0);
  EXPECT_EQ(NaturalOrder("n2", "n2"), 0);
}

// Every list says by which key its items are told apart, and every event kind is documented.
TEST_F(SelectionTest, TheDocumentKnowsTheListsAndTheEvents) {
  for (const auto& [path, id] : {std::pair{"/nodes", "id"},
                                 {"/gpus", "id"},
                                 {"/jobs/1/workers", "id"},
                                 {"/arrays", "id"},
                                 {"/events", "revision"},
                                 {"/jobs/1/checkpoints", "revision"},
                                 {"/audit", "id"},
                                 {"/usage", "id"}}) {
    EXPECT_EQ(Of(path).keys.at(0).path, id) << path;
  }
  const auto& schemas = *router_->document().Find("components")->Find("schemas");
  std::vector<std::string> kinds;
  for (const auto& kind : schemas.Find("EventKind")->Find("enum")->children) {
    kinds.push_back(kind.text);
  }
  const auto& facts = *schemas.Find("Facts");
  const auto& told = facts.Find("description")->text;
  const auto samples = Samples(std::make_index_sequence<std::variant_size_v<model::EventBody>>());
  ASSERT_EQ(kinds.size(), samples.size());
  for (const auto& body : samples) {
    const std::string kind(model::KindOf(body));
    EXPECT_EQ(kinds.at(body.index()), kind);
    const auto at = told.find("`" + kind + "`");
    ASSERT_NE(at, std::string::npos) << kind;
    const auto line = told.substr(at, told.find('\n', at) - at) + ",";
    for (const auto& fact : model::EventToNode(body).children) {
      EXPECT_NE(line.find(" " + fact.key + ","), std::string::npos) << kind << " " << fact.key;
      EXPECT_NE(facts.Find("properties")->Find(fact.key), nullptr) << fact.key;
    }
  }
}

}  // namespace
}  // namespace muster::api

#include "sim/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/corpus_run.h"

namespace muster::sim {
namespace {

// One node with two GPUs, one queue, a running and a waiting job; RUNNING and PENDING are what the
// waiting job is expected to have.
constexpr const char* kScenario = R"({"kind": "scenarios", "schema": 1, "family": "f",
"scenarios": [{"id": "f-1", "family": "f", "title": "t", "tags": [], "basis": "stated",
 "settings": {"placement": {"gpu": "pack", "cpu": "pack"}, "move_limit": null,
  "reclaim_may_move_victims": true, "usage_history": null},
 "topologies": [],
 "nodes": [{"name": "n0", "gpus": 2, "gpu_memory_mib": 100, "cpu_milli": 20000,
  "memory_mib": 20000, "max_tasks": 110, "labels": {}}],
 "queues": [{"name": "q0", "parent": null, "priority": 100, "created_order": 0,
  "quota": {"gpu": 2, "cpu_milli": null, "memory_mib": null},
  "limit": {"gpu": null, "cpu_milli": null, "memory_mib": null},
  "weight": {"gpu": 1, "cpu_milli": 1, "memory_mib": 1},
  "reclaim_min_runtime_s": 0, "preempt_min_runtime_s": 0}],
 "jobs": [
  {"name": "old", "queue": "q0", "priority": 50, "preemptible": true, "created_s_ago": 120,
   "min_tasks": 1, "min_subgroups": null, "subgroups": null, "topology": null,
   "preemption_delay_s": 0, "stale_for_s": null, "stale_grace_s": null,
   "tasks": [{"name": "old-0", "gpu": 1, "cpu_milli": 1000, "memory_mib": 0, "state": "running",
    "node": "n0", "gpu_indices": [0], "started_s_ago": 60, "task_priority": 0, "subgroup": null,
    "allowed_nodes": null}]},
  {"name": "new", "queue": "q0", "priority": 50, "preemptible": true, "created_s_ago": 60,
   "min_tasks": 1, "min_subgroups": null, "subgroups": null, "topology": null,
   "preemption_delay_s": 0, "stale_for_s": null, "stale_grace_s": null,
   "tasks": [{"name": "new-0", "gpu": 1, "cpu_milli": 1000, "memory_mib": 0, "state": "pending",
    "node": null, "gpu_indices": null, "started_s_ago": null, "task_priority": 0,
    "subgroup": null, "allowed_nodes": null}]}],
 "expect": {"rounds_to_converge": 1, "stable_rounds": 2, "max_evictions": 0,
  "evictions_needed": 0, "jobs": {
   "old": {"running": 1, "pending": 0, "gpus": 1, "tasks": {
    "old-0": {"state": "running", "node": "n0", "node_why": "stays"}}},
   "new": {"running": RUNNING, "pending": PENDING, "gpus": RUNNING, "tasks": {}}}}}]})";

constexpr const char* kShares = R"({"kind": "fair_share", "schema": 1, "cases": [{"id": "s-1",
 "title": "t", "parts": [{"resource": "gpu", "total": 6, "phase": "quota_then_over_quota",
  "queues": [
   {"name": "a", "quota": 1, "limit": null, "weight": 3, "request": 9, "allocated": 0,
    "priority": 100, "created_order": 0, "already_given": 0},
   {"name": "b", "quota": 1, "limit": null, "weight": 1, "request": 9, "allocated": 0,
    "priority": 100, "created_order": 1, "already_given": 0}],
  "expect": {"shares": {"a": 4, "b": SHARE}, "remaining": null}}]}]})";

std::string Replace(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
  }
  return text;
}

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        (std::string("corpus_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CorpusTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  ScenarioResult RunWith(const std::string& running, const std::string& pending) {
    const auto text = Replace(Replace(kScenario, "RUNNING", running), "PENDING", pending);
    const auto file = ReadCorpusFile(Write("f.json", text));
    EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().message);
    const auto result = RunScenario(file->scenarios.at(0));
    EXPECT_TRUE(result.has_value());
    return *result;
  }

  std::filesystem::path folder_;
};

TEST_F(CorpusTest, AScenarioWhoseEndIsReachedPasses) {
  const auto result = RunWith("1", "0");
  EXPECT_TRUE(result.passed()) << result.differences[0];
  EXPECT_EQ(result.id, "f-1");
  ASSERT_EQ(result.rounds.size(), 3U) << "the round of convergence and the stable ones";
  EXPECT_EQ(result.rounds[0].tasks.at("new-0").state, TaskState::kRunning);
  EXPECT_EQ(result.rounds[0].tasks.at("new-0").node, "n0");
  EXPECT_TRUE(result.rounds[0].evicted.empty());
}

TEST_F(CorpusTest, AScenarioWithAnotherEndSaysWhatDiffers) {
  const auto result = RunWith("0", "1");
  ASSERT_FALSE(result.passed());
  std::string all;
  for (const auto& difference : result.differences) all += difference + "\n";
  EXPECT_NE(all.find("new: 1 running, expected 0"), std::string::npos) << all;
  EXPECT_NE(all.find("new: holds 1 GPUs, expected 0"), std::string::npos) << all;
}

TEST_F(CorpusTest, AShareCaseIsJudgedByItsShares) {
  const auto good = ReadCorpusFile(Write("s.json", Replace(kShares, "SHARE", "2")));
  ASSERT_TRUE(good.has_value()) << good.error().message;
  EXPECT_TRUE(RunShareCase(good->cases.at(0)).passed());
  EXPECT_EQ(RunShareCase(good->cases.at(0)).shares.at(0).at("a"), 4);
  const auto bad = ReadCorpusFile(Write("b.json", Replace(kShares, "SHARE", "3")));
  const auto result = RunShareCase(bad->cases.at(0));
  ASSERT_EQ(result.differences.size(), 1U);
  EXPECT_EQ(result.differences[0].substr(0, 2), "b:");
}

TEST_F(CorpusTest, AFileThatBreaksTheSchemaNamesTheScenario) {
  const auto text = Replace(kScenario, "\"max_tasks\"", "\"max_task\"");
  const auto file =
      ReadCorpusFile(Write("f.json", Replace(Replace(text, "RUNNING", "1"), "PENDING", "0")));
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(file.error().message.find("f-1"), std::string::npos) << file.error().message;
  EXPECT_NE(file.error().message.find("max_tasks"), std::string::npos) << file.error().message;
  EXPECT_FALSE(ReadCorpusFile((folder_ / "none.json").string()).has_value());
  EXPECT_FALSE(ReadCorpusFile(Write("broken.json", "{")).has_value());
}

TEST_F(CorpusTest, AFolderMeansItsFilesInOrder) {
  Write("b.json", "{}");
  Write("a.json", "{}");
  Write("notes.txt", "");
  const auto files = ListFiles({folder_.string()}, {".json"});
  ASSERT_TRUE(files.has_value());
  ASSERT_EQ(files->size(), 2U);
  EXPECT_TRUE(files->at(0).ends_with("a.json"));
  EXPECT_TRUE(files->at(1).ends_with("b.json"));
}

}  // namespace
}  // namespace muster::sim

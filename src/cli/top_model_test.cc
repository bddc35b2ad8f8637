#include "cli/top_model.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TopJob Job(std::int64_t id, const char* name, const char* phase, std::int64_t gpus = 0) {
  TopJob job;
  job.id = id;
  job.name = name;
  job.phase = phase;
  job.gpu_milli = gpus * 1000;
  job.ended = job.phase == "failed" || job.phase == "succeeded";
  return job;
}

std::vector<std::int64_t> Ids(const TopModel& model) {
  std::vector<std::int64_t> ids;
  for (const auto* job : model.Rows(0)) ids.push_back(job->id);
  return ids;
}

class TopModelTest : public testing::Test {
 protected:
  TopModelTest() {
    model_.Put(Job(1, "resnet", "waiting", 8));
    model_.Put(Job(2, "bert", "running", 2));
    model_.Put(Job(3, "probe", "failed"));
    model_.Put(Job(4, "restore", "running", 4));
  }
  TopModel model_;
};

TEST_F(TopModelTest, WhatRunsComesFirstAndWhatHasEndedLast) {
  EXPECT_EQ(Ids(model_), (std::vector<std::int64_t>{2, 4, 1, 3}));
  model_.ShowEnded(false);
  EXPECT_EQ(Ids(model_), (std::vector<std::int64_t>{2, 4, 1}));
}

TEST_F(TopModelTest, SortsByEachColumnAndBackwards) {
  while (model_.sort() != TopSort::kGpus) model_.SortNext();
  EXPECT_EQ(Ids(model_), (std::vector<std::int64_t>{1, 4, 2, 3}));
  model_.Reverse();
  EXPECT_EQ(Ids(model_), (std::vector<std::int64_t>{3, 2, 4, 1}));
  model_.SortNext();
  model_.SortNext();
  EXPECT_EQ(model_.sort(), TopSort::kPhase);
}

TEST_F(TopModelTest, AFilterLooksIntoNamesWhateverTheirCase) {
  model_.Filter("RES");
  EXPECT_EQ(Ids(model_), (std::vector<std::int64_t>{4, 1}));
  model_.Filter("running");
  EXPECT_EQ(Ids(model_), (std::vector<std::int64_t>{2, 4}));
  model_.Filter("nothing has this");
  EXPECT_EQ(model_.Selected(0), nullptr);
}

TEST_F(TopModelTest, TheSelectionStaysWithItsJobAndAtTheEnds) {
  model_.Move(1, 0);
  ASSERT_EQ(model_.Selected(0)->id, 4);
  model_.Put(Job(5, "early", "running"));
  model_.Put(Job(0, "earlier", "running"));
  EXPECT_EQ(model_.Selected(0)->id, 4);
  model_.Move(100, 0);
  EXPECT_EQ(model_.Selected(0)->id, 3);
  model_.Move(-100, 0);
  EXPECT_EQ(model_.Selected(0)->id, 0);
}

TEST_F(TopModelTest, AListReplacesWhatHasNotEnded) {
  model_.Replace({Job(2, "bert", "running", 2)});
  EXPECT_EQ(Ids(model_), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(model_.ByPhase(), (std::map<std::string, std::int64_t>{{"running", 1}}));
}

TEST(TopJob, TimeGoesOnOnlyForAJobThatRuns) {
  auto job = Job(1, "a", "running");
  job.ran_ms = 1000;
  job.asked_ms = 5000;
  EXPECT_EQ(job.RanMs(7000), 3000);
  job.phase = "paused";
  EXPECT_EQ(job.RanMs(7000), 1000);
}

}  // namespace
}  // namespace muster::cli

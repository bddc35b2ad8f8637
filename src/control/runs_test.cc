#include "control/runs.h"

#include <gtest/gtest.h>

#include "base/temp_folder.h"

namespace muster::control {
namespace {

class RunsTest : public ::testing::Test {
 protected:
  RunsTest() {
    auto spec = std::make_shared<model::Job>();
    spec->name = "digits";
    spec->queue = "vision";
    job_.id = 7;
    job_.spec = spec;
    job_.user = "ana";
    Open();
  }

  void Open() {
    runs_.reset();
    auto store = state::RunStore::Open(folder_.path() + "/runs.db");
    ASSERT_TRUE(store);
    runs_ = std::make_unique<Runs>(std::move(*store));
  }

  void Hear(std::uint32_t worker, std::int64_t step, std::int64_t at_ms, double loss) {
    contract::Report report;
    report.step = step;
    report.at_ms = at_ms;
    report.numbers["loss"] = loss;
    runs_->Hear(job_, worker, report);
  }

  std::vector<std::int64_t> Steps() {
    std::vector<std::int64_t> steps;
    const auto run = runs_->Find(7);
    if (!run) return steps;
    for (const auto& point : run->curve.points()) steps.push_back(point.step);
    return steps;
  }

  TempFolder folder_;
  state::JobRecord job_;
  std::unique_ptr<Runs> runs_;
};

TEST_F(RunsTest, ListensToTheFirstOfAGang) {
  Hear(1, 10, 1'000, 3);
  Hear(0, 11, 1'100, 2);
  Hear(1, 12, 1'200, 9);
  Hear(0, 13, 1'300, 1);
  EXPECT_EQ(Steps(), (std::vector<std::int64_t>{10, 11, 13}));
}

TEST_F(RunsTest, ListensToAnotherWhenTheFirstIsSilent) {
  Hear(0, 10, 1'000, 3);
  Hear(2, 11, 9'000, 2);
  Hear(2, 20, 12'000, 1);
  EXPECT_EQ(Steps(), (std::vector<std::int64_t>{10, 20}));
}

TEST_F(RunsTest, ForgetsTheBestOfStepsThatAreDoneAgain) {
  Hear(0, 1, 1'000, 3);
  Hear(0, 2, 2'000, 2);
  Hear(0, 3, 3'000, 1);
  EXPECT_EQ(runs_->Head(7)->best_step, 3);
  Hear(0, 2, 4'000, 2.5);
  EXPECT_EQ(runs_->Head(7)->best_loss->value, 2.5);
  EXPECT_EQ(runs_->Head(7)->best_step, 2);
  EXPECT_EQ(Steps(), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(RunsTest, GoesOnAfterARestartOfTheDaemonWithoutHearingTwice) {
  Hear(0, 1, 1'000, 3);
  Hear(0, 2, 2'000, 2);
  runs_->Keep(2'000, 0, true);
  Open();
  Hear(0, 2, 2'000, 2);  // as the spool still has it
  EXPECT_EQ(runs_->Head(7)->reports, 2);
  Hear(0, 3, 3'000, 1);
  EXPECT_EQ(Steps(), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(RunsTest, KeepsTheEndAtOnce) {
  Hear(0, 1, 1'000, 3);
  runs_->Keep(1'000, 0);
  job_.ran_ms = 500;
  job_.ending.emplace();
  job_.ending->end = model::End::kSucceeded;
  job_.ending->at_ms = 1'500;
  runs_->Ended(job_);
  runs_->Keep(1'501, 0);
  Open();
  const auto head = runs_->Head(7);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->end, "succeeded");
  EXPECT_EQ(head->ran_ms, 500);
  EXPECT_EQ(runs_->Latest(5), (std::vector<model::JobNumber>{7}));
}

TEST_F(RunsTest, TakesAModelFromWhoeverKeptOne) {
  Hear(0, 1, 1'000, 3);
  contract::Report report;
  report.step = 1;
  report.at_ms = 1'100;
  report.kept_path = "/ckpt/model.safetensors";
  report.kept_hash = "00ff";
  report.kept_numbers["test_loss"] = 0.5;
  runs_->Hear(job_, 3, report);
  EXPECT_EQ(runs_->Head(7)->model_hash, "00ff");
  EXPECT_EQ(runs_->Head(7)->model_numbers.at("test_loss").value, 0.5);
  EXPECT_EQ(runs_->Head(7)->worker, 0U);
  Hear(0, 2, 1'100, 2);
  EXPECT_EQ(runs_->Head(7)->step, 2) << "of the same moment as the model";
}

TEST_F(RunsTest, TakesTheLastStepThatComesTogetherWithTheModel) {
  Hear(0, 1, 1'000, 3);
  contract::Report report;
  report.step = 2;
  report.at_ms = 1'100;
  report.numbers["loss"] = 2;
  report.kept_path = "/ckpt/model.safetensors";
  runs_->Hear(job_, 0, report);
  EXPECT_EQ(Steps(), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(RunsTest, TakesTheLastStepAlsoWhenAnotherHasKeptTheModelSince) {
  Hear(0, 10, 1'000, 3);
  contract::Report report;
  report.step = 11;
  report.at_ms = 1'200;
  report.kept_path = "/ckpt/model.safetensors";
  runs_->Hear(job_, 1, report);
  Hear(0, 11, 1'100, 2);
  EXPECT_EQ(Steps(), (std::vector<std::int64_t>{10, 11}));
}

TEST_F(RunsTest, HasNothingOfWhoReportsNoStep) {
  runs_->Hear(job_, 0, contract::Report{});
  EXPECT_FALSE(runs_->Find(7));
  EXPECT_TRUE(runs_->Latest(5).empty());
}

TEST_F(RunsTest, DropsWhatIsOlderThanHistory) {
  Hear(0, 1, 1'000, 3);
  job_.ending.emplace();
  runs_->Ended(job_);
  runs_->Keep(10'000'000, 2'000);
  EXPECT_TRUE(runs_->Latest(5).empty());
}

}  // namespace
}  // namespace muster::control

#include "state/run_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/temp_folder.h"

namespace muster::state {
namespace {

RunCurve CurveOf(int reports) {
  RunCurve curve;
  for (int step = 1; step <= reports; ++step) {
    curve.Add(step, 1'000 * step, 64 * step, {{"loss", 1.0 / step}});
  }
  return curve;
}

TEST(RunCurve, KeepsEveryReportUntilItIsFull) {
  const auto curve = CurveOf(998);
  ASSERT_EQ(curve.points().size(), 998U);
  EXPECT_EQ(curve.points()[500].step, 501);
  EXPECT_EQ(curve.NumbersOf(curve.points()[1]), (RunNumbers{{"loss", 0.5}}));
}

TEST(RunCurve, StaysBelowItsBoundEvenlyAndWithTheNewest) {
  RunCurve curve;
  for (int step = 1; step <= 100'000; ++step) {
    curve.Add(step, step, -1, {{"loss", 1.0}});
    ASSERT_LT(curve.points().size(), kMostPoints);
    ASSERT_EQ(curve.points().back().step, step);
    ASSERT_EQ(curve.points().front().step, 1);
  }
  const auto& points = curve.points();
  const auto gap = points[1].step - points[0].step;
  EXPECT_EQ(gap, 128);  // the smallest power of two with which all fit
  for (std::size_t at = 1; at + 1 < points.size(); ++at) {
    ASSERT_EQ(points[at].step - points[at - 1].step, gap);
  }
}

TEST(RunCurve, StepsThatAreDoneAgainReplaceThoseFromBefore) {
  auto curve = CurveOf(10);
  EXPECT_FALSE(curve.Add(11, 11'000, -1, {{"loss", 5.0}}));
  EXPECT_TRUE(curve.Add(4, 12'000, -1, {{"loss", 7.0}}));
  ASSERT_EQ(curve.points().size(), 4U);
  EXPECT_EQ(curve.points().back().step, 4);
  EXPECT_EQ(curve.NumbersOf(curve.points().back()).at("loss"), 7.0);
  EXPECT_EQ(curve.Lowest("loss"), (std::pair<std::int64_t, double>{3, 1.0 / 3}));
}

TEST(RunCurve, ANewestThatStoodInForOthersIsDoneAgainToo) {
  auto curve = CurveOf(2'000);  // thinned: the last one only stands there until the next
  const auto size = curve.points().size();
  EXPECT_TRUE(curve.Add(2'000, 1, -1, {{"loss", 7.0}}));
  EXPECT_EQ(curve.points().size(), size);
  EXPECT_EQ(curve.NumbersOf(curve.points().back()).at("loss"), 7.0);
}

TEST(RunCurve, LeavesOutNumbersThatAreTooMany) {
  RunNumbers numbers;
  for (int at = 0; at < 100; ++at) numbers["n" + std::to_string(at)] = at;
  RunCurve curve;
  curve.Add(1, 1, -1, numbers);
  EXPECT_EQ(curve.NumbersOf(curve.points()[0]).size(), kMostNumbers);
}

TEST(RunCurve, KnowsWhatWasNotReportedFromWhatIsNoNumber) {
  RunCurve curve;
  curve.Add(1, 1, -1, {{"loss", std::nan("")}});
  curve.Add(2, 2, -1, {{"lr", std::numeric_limits<double>::infinity()}});
  const auto read = RunCurve::Decode(curve.Encode());
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(read->NumbersOf(read->points()[0]).at("loss")));
  EXPECT_EQ(read->NumbersOf(read->points()[1]),
            (RunNumbers{{"lr", std::numeric_limits<double>::infinity()}}));
  EXPECT_FALSE(read->Lowest("loss"));
}

TEST(RunCurve, GoesOnWhereItWasWhenItIsReadAgain) {
  auto whole = CurveOf(3'000);
  auto read = RunCurve::Decode(CurveOf(1'500).Encode());
  ASSERT_TRUE(read);
  for (int step = 1'501; step <= 3'000; ++step) {
    read->Add(step, 1'000 * step, 64 * step, {{"loss", 1.0 / step}});
  }
  EXPECT_EQ(*read, whole);
}

TEST(RunCurve, RefusesBytesThatAreNone) {
  EXPECT_FALSE(RunCurve::Decode("x"));
  EXPECT_FALSE(RunHead::Decode("\xFF\xFF"));
}

Run RunOf(model::JobNumber job, std::int64_t last_ms) {
  Run run;
  run.head.job = job;
  run.head.name = "digits";
  run.head.last_ms = last_ms;
  run.head.numbers["loss"] = {0.25};
  run.head.best_loss = RunNumber{0.125};
  run.head.model_hash = "00ff";
  run.curve = CurveOf(3);
  return run;
}

TEST(RunStore, HasWhatWasSavedWhenItIsOpenedAgain) {
  const TempFolder folder;
  const auto path = folder.path() + "/runs.db";
  const auto saved = RunOf(7, 10);
  {
    auto store = RunStore::Open(path);
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->Save({&saved}));
  }
  auto store = RunStore::Open(path);
  ASSERT_TRUE(store);
  const auto read = (*store)->Load(7);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->head, saved.head);
  EXPECT_EQ(read->curve, saved.curve);
  EXPECT_EQ((*store)->Head(7), saved.head);
  EXPECT_FALSE((*store)->Load(8));
}

TEST(RunStore, ListsTheNewestAndDropsTheOld) {
  const TempFolder folder;
  auto store = RunStore::Open(folder.path() + "/runs.db");
  ASSERT_TRUE(store);
  const state::Run runs[] = {RunOf(1, 100), RunOf(2, 300), RunOf(3, 200)};
  ASSERT_TRUE((*store)->Save({&runs[0], &runs[1], &runs[2]}));
  EXPECT_EQ((*store)->Latest(2), (std::vector<model::JobNumber>{3, 2}));
  ASSERT_TRUE((*store)->Drop(200));
  EXPECT_EQ((*store)->Latest(9), (std::vector<model::JobNumber>{3, 2}));
}

TEST(RunStore, BeginsAnewWhereTheFileIsNone) {
  const TempFolder folder;
  const auto path = folder.path() + "/runs.db";
  std::ofstream(path) << std::string(10'000, 'x');
  auto store = RunStore::Open(path);
  ASSERT_TRUE(store);
  EXPECT_TRUE((*store)->Latest(9).empty());
  EXPECT_TRUE(std::ifstream(path + ".damaged").good());
}

}  // namespace
}  // namespace muster::state

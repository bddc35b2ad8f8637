#include "sim/report/charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/gantt.h"

namespace muster::sim::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t CountOf(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Charts, NoDataAndOneValueAreDrawnToo) {
  for (const double width : {350.0, 880.0}) {
    for (const auto& drawing :
         {DrawDistribution({}, "time", width), DrawDistribution({{"a", {}}}, "time", width),
          DrawDistribution({{"a", {60}}}, "time", width), DrawPanels({}, width),
          DrawPanels({{"a", "", {}, 0}}, width), DrawBars({}, "x", 0, width),
          DrawBars({{"a", {0}}}, "x", 0, width), DrawDots({}, "x", width),
          DrawDots({{"a", {}}, {"b", {5}}}, "x", width), DrawGantt({}, {}, width),
          DrawGantt({{"a", "", 0, 0, {}}}, {}, width)}) {
      EXPECT_GT(drawing.height(), 0);
      EXPECT_LT(drawing.height(), 700);
      EXPECT_THAT(drawing.body(), Not(HasSubstr("nan")));
      EXPECT_THAT(drawing.body(), Not(HasSubstr("inf")));
    }
  }
}

TEST(Charts, ADistributionRisesToAllAtTheLongest) {
  const auto drawing = DrawDistribution({{"a", {60, 120, 120, 3600}}}, "time", 880);
  EXPECT_EQ(CountOf(drawing.body(), "class=\"line c0\""), 2U) << "the line and its key";
  EXPECT_THAT(drawing.body(), HasSubstr(">1 min</text>"));
  EXPECT_THAT(drawing.body(), HasSubstr(">1 h</text>"));
}

TEST(Charts, ManyValuesMakeABoundedDrawing) {
  std::vector<double> values;
  std::vector<Step> steps;
  std::vector<GanttRow> rows;
  for (int i = 0; i < 50'000; ++i) {
    values.push_back(60 + i);
    steps.push_back({static_cast<double>(i), static_cast<double>(i % 100)});
  }
  for (int i = 0; i < 5'000; ++i) {
    GanttRow row{"job", "tip", i, i + 5'000, {}};
    for (int b = 0; b < 100; ++b) row.boxes.push_back({i + b * 50, i + b * 50 + 50, 1});
    rows.push_back(std::move(row));
  }
  EXPECT_LT(DrawDistribution({{"a", values}}, "time", 880).body().size(), 20'000U);
  EXPECT_LT(DrawPanels({{"a", "", steps, 50'000}}, 880).body().size(), 30'000U);
  EXPECT_LT(DrawDots({{"a", values}}, "x", 880).body().size(), 40'000U);
  const auto gantt = DrawGantt(rows, {10'000, 1}, 880);
  EXPECT_LT(gantt.body().size(), 200'000U);
  EXPECT_LT(gantt.height(), 900);
}

TEST(Charts, ThinnedStepsKeepTheMeanOverTime) {
  std::vector<Step> steps;
  double area = 0;
  for (int i = 0; i < 1000; ++i) {
    steps.push_back({i * 7.0, static_cast<double>(i * i % 101)});
    area += 7.0 * steps.back().value;
  }
  const auto thin = Thinned(steps, 7000, 64);
  ASSERT_EQ(thin.size(), 64U);
  double thin_area = 0;
  for (const auto& step : thin) thin_area += step.value * 7000 / 64;
  EXPECT_NEAR(thin_area, area, 1e-6 * area);
  EXPECT_EQ(Thinned(steps, 7000, 1000).size(), 1000U) << "few enough are left as they are";
}

TEST(Charts, ABarShowsTheRangeOnlyOfSeveralValues) {
  EXPECT_THAT(DrawBars({{"a", {5}}}, "x", 10, 880).body(), Not(HasSubstr("range")));
  const auto several = DrawBars({{"a", {4, 6}}}, "x", 10, 880).body();
  EXPECT_THAT(several, HasSubstr("class=\"range\""));
  EXPECT_THAT(several, HasSubstr(">5.00 %</text>"));
}

TEST(Gantt, FewRowsHaveNamesManyHaveNumbers) {
  std::vector<GanttRow> rows(30, {"a<b", "", 0, 60, {{0, 60, 1}}});
  EXPECT_EQ(CountOf(DrawGantt(rows, {60, 1}, 880).body(), ">a&lt;b</text>"), 30U);
  rows.resize(400, rows[0]);
  const auto body = DrawGantt(rows, {60, 1}, 880).body();
  EXPECT_THAT(body, Not(HasSubstr("a&lt;b</text>")));
  EXPECT_THAT(body, HasSubstr(">400</text>"));
  EXPECT_EQ(GanttStride(400), 2U);
  EXPECT_EQ(GanttStride(kMostRows), 1U);
}

TEST(Gantt, ShadesFollowTheGpus) {
  const std::vector<GanttRow> rows = {{"a", "", 0, 60, {{0, 20, 1}, {20, 40, 8}, {40, 60, 64}}}};
  const auto body = DrawGantt(rows, {60, 64}, 880).body();
  for (const char* name : {"waits", "1 GPU", "3–4", "5–8", "33 or more"}) {
    EXPECT_THAT(body, HasSubstr(std::string(">") + name + "</text>"));
  }
  EXPECT_EQ(CountOf(body, "class=\"s3\""), 2U) << "the box and its key";
  EXPECT_EQ(CountOf(body, "class=\"s6\""), 2U);
  EXPECT_EQ(CountOf(body, "class=\"s2\""), 1U) << "the key alone";
}

TEST(Gantt, FewLevelsAreFarApart) {
  const auto body = DrawGantt({{"a", "", 0, 60, {{0, 20, 1}, {20, 40, 2}}}}, {60, 2}, 880).body();
  EXPECT_EQ(CountOf(body, "class=\"s1\""), 2U);
  EXPECT_EQ(CountOf(body, "class=\"s5\""), 2U);
}

}  // namespace
}  // namespace muster::sim::report

#include "api/exposition.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(Exposition, HeadsAndSeriesAreLinesOfTheFormat) {
  Exposition out;
  out.Head("muster_jobs", "gauge", "Jobs.");
  out.Value("muster_jobs", {{"phase", "running"}, {"kind", "a"}}, 3);
  out.Value("muster_revision", 123456789);
  EXPECT_EQ(out.Take(),
            "# HELP muster_jobs Jobs.\n# TYPE muster_jobs gauge\n"
            "muster_jobs{phase=\"running\",kind=\"a\"} 3\nmuster_revision 123456789\n");
}

TEST(Exposition, NoNameForgesALine) {
  Exposition out;
  out.Value("m", {{"queue", "a\"} 1\nm{queue=\"b\\"}}, 2);
  EXPECT_EQ(out.Take(), "m{queue=\"a\\\"} 1\\nm{queue=\\\"b\\\\\"} 2\n");
}

TEST(Exposition, BucketsAreCumulativeAndEndWithAllOfThem) {
  Histogram histogram;
  histogram.Add(1'000'000);
  histogram.Add(20'000'000'000);
  Exposition out;
  out.Buckets("t_seconds", {{"operation", "x"}}, histogram);
  const auto text = out.Take();
  EXPECT_NE(text.find("t_seconds_bucket{operation=\"x\",le=\"0.0005\"} 0\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_bucket{operation=\"x\",le=\"0.002\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_bucket{operation=\"x\",le=\"10\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_bucket{operation=\"x\",le=\"+Inf\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("t_seconds_count{operation=\"x\"} 2\n"), std::string::npos);
}

}  // namespace
}  // namespace muster::api

#include "sim/report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace muster::sim::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Escape, NothingOfATextIsMarkup) {
  EXPECT_EQ(Escape("<b a=\"1\" c='2'>&</b>"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;&lt;/b&gt;");
  EXPECT_EQ(Escape("größer 機"), "größer 機");
  EXPECT_EQ(Escape(""), "");
}

TEST(Escape, WhatNoXmlMayHoldIsReplaced) {
  EXPECT_EQ(Escape(std::string("a\0b\x1b\x7f", 5)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Escape("a\nb\tc"), "a b c");
  EXPECT_EQ(Escape("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(Escape("x\xEF\xBF\xBF"), "x\xEF\xBF\xBD");
}

TEST(Shorten, CountsCharactersAndNotBytes) {
  EXPECT_EQ(Shorten("größer", 6), "größer");
  EXPECT_EQ(Shorten("größer", 5), "größ…");
  EXPECT_EQ(Shorten("abc", 1), "…");
  EXPECT_EQ(Shorten("", 4), "");
}

TEST(Drawing, CoordinatesAreShortAndAlwaysNumbers) {
  Drawing drawing(100);
  drawing.Line(0.04, 1.25, -0.01, 1e-9, "grid");
  EXPECT_EQ(drawing.body(), "<line x1=\"0\" y1=\"1.3\" x2=\"0\" y2=\"0\" class=\"grid\"/>\n");
  Drawing odd(100);
  odd.Dot(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1, "");
  EXPECT_EQ(odd.body(), "<circle cx=\"0\" cy=\"0\" r=\"1\"/>\n");
}

TEST(Drawing, ADrawingHasATitleADescriptionAndBothSchemes) {
  Drawing drawing(100);
  drawing.set_height(50);
  drawing.Text(1, 2, "a < b");
  const auto file = SvgFile(drawing, {"Title & more", "What <it> shows"});
  EXPECT_THAT(file, HasSubstr("<title id=\"t\">Title &amp; more</title>"));
  EXPECT_THAT(file, HasSubstr("<desc id=\"d\">What &lt;it&gt; shows</desc>"));
  EXPECT_THAT(file, HasSubstr("aria-labelledby=\"t d\""));
  EXPECT_THAT(file, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(file, HasSubstr(">a &lt; b</text>"));
  const auto part = SvgPart(drawing, {"Title", "Words"}, "jct", "wide");
  EXPECT_THAT(part, HasSubstr("aria-labelledby=\"jct-t jct-d\""));
  EXPECT_THAT(part, Not(HasSubstr("<style>")));
}

TEST(Drawing, AnEmptyPathIsNotDrawn) {
  Drawing drawing(100);
  drawing.Path(Pen(), "line");
  EXPECT_EQ(drawing.body(), "");
}

}  // namespace
}  // namespace muster::sim::report

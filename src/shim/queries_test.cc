#include "shim/queries.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace muster::shim {
namespace {

using namespace std::string_literals;

TEST(Queries, WhatATerminalAnswersIsLeftOut) {
  for (const auto& asked : {"\033[6n"s,
                            "\033[5n"s,
                            "\033[?6n"s,
                            "\033[?996n"s,
                            "\033[c"s,
                            "\033[0c"s,
                            "\033[>c"s,
                            "\033[>0c"s,
                            "\033[=c"s,
                            "\033Z"s,
                            "\033[?2004$p"s,
                            "\033[4$p"s,
                            "\033[14t"s,
                            "\033[18t"s,
                            "\033[21t"s,
                            "\033[x"s,
                            "\033[>q"s,
                            "\033[?u"s,
                            "\033[?4m"s,
                            "\033[1$w"s,
                            "\005"s,
                            "\033]10;?\007"s,
                            "\033]11;?\033\\"s,
                            "\033]4;1;?\007"s,
                            "\033]52;c;?\007"s,
                            "\033]1337;ReportCellSize\007"s,
                            "\033P$qm\033\\"s,
                            "\033P+q544e\033\\"s,
                            "\033_Gi=31,a=q;AAAA\033\\"s,
                            "\302\2336n"s,
                            "\302\23511;?\302\234"s,
                            "\302\232"s}) {
    EXPECT_EQ(WithoutQueries("a" + asked + "b"), "ab") << testing::PrintToString(asked);
  }
}

TEST(Queries, WhatIsOnlyShownIsKept) {
  for (const auto& shown :
       {"plain\r\n\tand \303\251 \342\202\254 \302\240 wide\n"s, "\033[1;31mred\033[0m"s,
        "\033[2J\033[H"s, "\033[?25l\033[?1049h\033[?2004h"s, "\033[22;0t\033[8;24;80t"s,
        "\033[!p\033[2 q\033(B\0337"s, "\033]0;what is it?\033\\"s,
        "\033]8;;https://a.b/?q=1\033\\link\033]8;;\033\\"s, "\033]4;1;rgb:00/00/00\033\\"s,
        "\033P0;1q#0~~\033\\"s, "\033[>4;2m\033[>1u"s}) {
    EXPECT_EQ(WithoutQueries(shown), shown);
  }
  EXPECT_EQ(WithoutQueries("\033]2;title\007"), "\033]2;title\033\\");
}

TEST(Queries, ControlsWithinASequenceDoNotHideIt) {
  EXPECT_EQ(WithoutQueries("\033[6\rn"), "\r");
  EXPECT_EQ(WithoutQueries("\033\005[6n"), "");
  EXPECT_EQ(WithoutQueries("\033[\1776n"), "");
}

TEST(Queries, WhatIsLeftNeverBecomesOne) {
  EXPECT_EQ(WithoutQueries("\033\033[6n[6n"), "[6n");
  EXPECT_EQ(WithoutQueries("\033[\033[6n6n"), "6n");
  EXPECT_EQ(WithoutQueries("\302\033[6n\2336n"), "\2336n");
  EXPECT_EQ(WithoutQueries("\033]11;\033[6n?\007"), "?\007");
  // What is not ended yet stays: its end is printed now, by a program that asks now.
  EXPECT_EQ(WithoutQueries("a\033[6"), "a\033[6");
  EXPECT_EQ(WithoutQueries("a\033]11;?\033"), "a\033]11;?\033");
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& drawn) {
    static constexpr std::string_view kLetters =
        "\033\033\033[]P\\6nc?;$pqt1\302\233\234\005\007\030aZ";
    std::string text;
    for (const auto c : drawn) text += kLetters[c % kLetters.size()];
    const auto once = WithoutQueries(text);
    RC_ASSERT(WithoutQueries(once) == once);
  }));
}

}  // namespace
}  // namespace muster::shim

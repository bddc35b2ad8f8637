#include "cli/full_screen.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using Keys = std::vector<char32_t>;

TEST(ParseKeys, KnowsTheKeysThatMoveInBothOfTheirForms) {
  EXPECT_EQ(
      ParseKeys("\033[A\033OB\033[5~\033[6~\033[H\033[4~"),
      (Keys{keys::kUp, keys::kDown, keys::kPageUp, keys::kPageDown, keys::kHome, keys::kEnd}));
}

TEST(ParseKeys, AnEscapeAloneIsOneAndAnUnknownSequenceIsNoText) {
  EXPECT_EQ(ParseKeys("\033"), (Keys{keys::kEscape}));
  EXPECT_EQ(ParseKeys("\033[1;5Cq"), (Keys{keys::kOther, U'q'}));
  EXPECT_EQ(ParseKeys("\033["), (Keys{keys::kOther}));
}

TEST(ParseKeys, TextIsCharactersWhateverTheirSize) {
  EXPECT_EQ(ParseKeys("a\u00e9\u6f22\n"), (Keys{U'a', U'\u00e9', U'\u6f22', keys::kEnter}));
  EXPECT_EQ(ParseKeys("\xe6"), (Keys{U'\u6000'}));  // cut off: some character, no crash
}

}  // namespace
}  // namespace muster::cli

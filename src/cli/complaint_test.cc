#include "cli/complaint.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace muster::cli {
namespace {

class ComplaintTest : public testing::Test {
 protected:
  ComplaintTest() {
    app_.require_subcommand(1);
    auto* ps = app_.add_subcommand("ps", "");
    ps->add_flag("--all");
    ps->add_option("--filter", filter_);
    ps->add_option("--secret", filter_)->group("");
    auto* queue = app_.add_subcommand("queue", "");
    queue->add_subcommand("show", "");
    queue->add_subcommand("list", "");
  }

  // What is said of these words; "" when nothing is wrong with them.
  std::string Said(std::vector<std::string> words) {
    if (auto unknown = UnknownVerb(app_, words); !unknown.empty()) return unknown;
    std::vector<std::string> backwards(words.rbegin(), words.rend());
    try {
      app_.parse(backwards);
    } catch (const CLI::ParseError& error) {
      return Complaint(&app_, error);
    }
    return "";
  }

  CLI::App app_{"", "muster"};
  std::string filter_;
};

TEST_F(ComplaintTest, AVerbThatWasMistypedIsNamed) {
  EXPECT_EQ(Said({"quue", "list"}),
            "no verb \"quue\"; did you mean queue? (`muster help` lists them)");
  EXPECT_EQ(Said({"queue", "shwo"}),
            "no verb \"shwo\" of `muster queue`; did you mean show? (one of show, list)");
  EXPECT_EQ(Said({"frobnicate"}), "no verb \"frobnicate\" (`muster help` lists them)");
  EXPECT_EQ(Said({"pq"}), "no verb \"pq\" (`muster help` lists them)");
  EXPECT_EQ(Said({"ps", "--all"}), "");
}

TEST_F(ComplaintTest, AVerbOfALaterReleaseIsNotTakenForASlip) {
  EXPECT_EQ(Said({"estimate"}), "estimate is not available yet (`muster help` lists what is)");
  EXPECT_EQ(Said({"tune", "job.yaml"}), "tune is not available yet (`muster help` lists what is)");
  EXPECT_EQ(Said({"queue", "policy"}), "no verb \"policy\" of `muster queue` (one of show, list)");
}

TEST_F(ComplaintTest, AFlagThatWasMistypedIsNamedAndAHiddenOneIsNot) {
  EXPECT_EQ(
      Said({"ps", "--filtre=a"}),
      "muster: this is not known here: --filtre=a; did you mean --filter? (`muster ps --help` "
      "tells more)\n");
  EXPECT_EQ(Said({"ps", "--secert", "x"}),
            "muster: this is not known here: --secert x (`muster ps --help` tells more)\n");
}

TEST_F(ComplaintTest, WordsAreSaidInTheOrderInWhichTheyWereTyped) {
  EXPECT_EQ(Said({"ps", "one", "--two", "three"}),
            "muster: this is not known here: one --two three (`muster ps --help` tells more)\n");
}

TEST_F(ComplaintTest, WhatCouldMoveTheCursorIsShownAsEscapes) {
  EXPECT_EQ(Said({"\033[2J"}), "no verb \"\\x1b[2J\" (`muster help` lists them)");
}

TEST_F(ComplaintTest, WordsBeforeTheVerbAreNamedToo) {
  app_.add_option("--context", filter_);
  EXPECT_EQ(Said({"--contxt", "a", "ps"}),
            "muster: this is not known here: --contxt a; did you mean --context? (`muster ps "
            "--help` tells more)\n");
  EXPECT_EQ(Said({"--bogus"}),
            "muster: this is not known here: --bogus (`muster --help` tells more)\n");
}

TEST_F(ComplaintTest, AMissingValueIsAskedFor) {
  EXPECT_EQ(Said({"ps", "--filter"}),
            "muster: --filter: a value is missing (`muster ps --help` tells more)\n");
}

TEST_F(ComplaintTest, AMissingVerbIsAskedFor) {
  EXPECT_EQ(Said({}), "muster: which verb is meant? (`muster --help` tells more)\n");
}

}  // namespace
}  // namespace muster::cli

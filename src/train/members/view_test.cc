#include "train/members/view.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/temp_folder.h"
#include "train/members/folder_store.h"

namespace muster::train {
namespace {

View Example() {
  View view;
  view.generation = 7;
  view.step = 1234;
  view.members = {{~0ULL, "a", "127.0.0.1:99", "x", 5}, {2, "b", "[::1]:8", "", 0}};
  view.leaving = {{3, "a", "", "", 0}};
  view.servers = {2};
  view.checkpoint = "/a file";
  view.waits = view.begun = true;
  return view;
}

TEST(ViewTest, KnowsItsMembersAndThoseWhoLeave) {
  const auto view = Example();
  EXPECT_EQ(view.RankOf(2), 1);
  EXPECT_FALSE(view.RankOf(3));
  EXPECT_TRUE(view.Knows(3));
  EXPECT_TRUE(view.IsServer(2));
  EXPECT_FALSE(view.IsServer(3));
}

TEST(ViewTest, MessagesAreReadAsTheyWereWritten) {
  const std::vector<Holding> held{{Holding::Kind::kOptimizer, 3, 4, 2, 9}, {}};
  const auto stopped = DecodeMessage(Encode(StoppedMessage{7, true, 9, held, {4, 5}}));
  ASSERT_TRUE(stopped && stopped->stopped);
  EXPECT_EQ(stopped->stopped->generation, 7U);
  EXPECT_TRUE(stopped->stopped->planned);
  EXPECT_EQ(stopped->stopped->completed, 9);
  EXPECT_EQ(stopped->stopped->holdings, held);
  EXPECT_EQ(stopped->stopped->unreachable, (std::vector<MemberId>{4, 5}));
  const auto change = DecodeMessage(Encode(ChangeMessage{Example(), {{2, held}}}));
  ASSERT_TRUE(change && change->change);
  EXPECT_EQ(change->change->view, Example());
  EXPECT_EQ(change->change->holdings.at(2), held);
  const auto join = DecodeMessage(Encode(JoinMessage{Example().members[0], true}));
  ASSERT_TRUE(join && join->join);
  EXPECT_TRUE(join->join->server);
  EXPECT_TRUE(DecodeMessage(Encode(LeaveMessage{}))->leave);
}

TEST(ViewTest, WhatIsNoMessageIsAnError) {
  for (const char* text : {"", "{", "[]", "{}", "7", R"({"change":{"generation":"x"}})",
                           R"({"stopped":1,"planned":true,"completed":2,"holdings":[[1]]})"}) {
    EXPECT_FALSE(DecodeMessage(text)) << text;
  }
}

TEST(FolderStoreTest, TheFirstClaimStands) {
  const TempFolder temp;
  const std::string folder = temp / "store";
  FolderStore one(folder), other(folder);
  EXPECT_EQ(one.Read("view-1"), std::nullopt);
  EXPECT_EQ(one.Claim("view-1", "mine"), "mine");
  EXPECT_EQ(other.Claim("view-1", "theirs"), "mine");
  EXPECT_EQ(other.Read("view-1"), "mine");
  EXPECT_TRUE(one.Write("lease", "1"));
  EXPECT_TRUE(other.Write("lease", "2"));
  EXPECT_EQ(one.Read("lease"), "2");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);  // no drafts
}

TEST(FolderStoreTest, AFolderThatCannotBeMadeIsAnErrorWithItsPath) {
  FolderStore store("/proc/no/such");
  const auto claimed = store.Claim("view-1", "x");
  ASSERT_FALSE(claimed);
  EXPECT_NE(claimed.error().message.find("/proc/no/such"), std::string::npos);
}

}  // namespace
}  // namespace muster::train

#include "state/request_keys.h"

#include <gtest/gtest.h>

#include "state/state.h"

namespace muster::state {
namespace {

RequestRecord Of(const std::string& user, const std::string& key, std::string answer = "{}") {
  RequestRecord record;
  record.said.user = user;
  record.said.key = key;
  record.said.answer = std::move(answer);
  return record;
}

TEST(RequestKeys, AreTheirUsersOwnAndTheFirstAnswerCounts) {
  RequestKeys keys;
  keys.Add(Of("ana", "k", "first"));
  keys.Add(Of("ana", "k", "second"));
  ASSERT_NE(keys.Find("ana", "k"), nullptr);
  EXPECT_EQ(keys.Find("ana", "k")->said.answer, "first");
  EXPECT_EQ(keys.Find("ben", "k"), nullptr);
  EXPECT_EQ(keys.size(), 1u);
}

TEST(RequestKeys, NobodyPushesOutAnothers) {
  RequestKeys keys;
  keys.Add(Of("ben", "his"));
  for (std::size_t i = 0; i <= RequestKeys::kOfUser; ++i) keys.Add(Of("ana", std::to_string(i)));
  EXPECT_EQ(keys.Find("ana", "0"), nullptr);
  EXPECT_NE(keys.Find("ana", "1"), nullptr);
  EXPECT_NE(keys.Find("ben", "his"), nullptr);
  EXPECT_EQ(keys.size(), RequestKeys::kOfUser + 1);
}

TEST(RequestKeys, LongAnswersAreBoundedAndTheLatestStays) {
  RequestKeys keys;
  const std::string half(RequestKeys::kBytesOfUser / 2 + 1, 'x');
  keys.Add(Of("ana", "1", half));
  keys.Add(Of("ana", "2", half));
  EXPECT_EQ(keys.Find("ana", "1"), nullptr);
  keys.Add(Of("ana", "3", half + half));
  EXPECT_NE(keys.Find("ana", "3"), nullptr);
  EXPECT_EQ(keys.size(), 1u);
}

TEST(RequestKeys, WhereAllHaveTooManyTheOneWithTheMostGivesUp) {
  RequestKeys keys;
  keys.Add(Of("few", "mine"));
  constexpr auto kUsers = RequestKeys::kInAll / RequestKeys::kOfUser;
  for (std::size_t user = 0; user < kUsers; ++user) {
    for (std::size_t i = 0; i < RequestKeys::kOfUser; ++i) {
      keys.Add(Of("u" + std::to_string(user), std::to_string(i)));
    }
  }
  EXPECT_EQ(keys.size(), RequestKeys::kInAll);
  EXPECT_NE(keys.Find("few", "mine"), nullptr);
}

TEST(RequestKeys, OfSubmissionsTheFirstJobStandsForAll) {
  RequestKeys keys;
  keys.AddSubmitted("ana", "a#b#0#abcd", 7);
  keys.AddSubmitted("ana", "a#b#1#abcd", 8);
  keys.AddSubmitted("ana", "junk", 9);
  const auto* found = keys.Find("ana", "a#b");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->job, 7u);
  EXPECT_EQ(found->said.digest, "abcd");
  EXPECT_EQ(keys.size(), 1u);
}

TEST(RequestKeys, SurviveASnapshot) {
  State state;
  state.Fold({1, model::RequestAnswered{"ana", "k1", "d", "job 1", 200, "{\"id\": \"1\"}"}});
  state.Fold({2, model::RequestAnswered{"ana", "k2", "d", "token 2", 201, ""}});
  const auto again = State::Decode(state.Encode());
  ASSERT_TRUE(again.has_value());
  const auto* found = again->requests().Find("ana", "k1");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->said.answer, "{\"id\": \"1\"}");
  EXPECT_EQ(again->requests().List()[1].said.key, "k2");
}

TEST(RequestKeys, OfBuildsWithAnotherDigestTheKeyAloneCounts) {
  RequestKeys keys;
  const std::string digest(RequestKeys::kDigestSize, 'd'), other(RequestKeys::kDigestSize, 'e');
  keys.AddSubmitted("ana", "new#0#" + digest, 7);
  keys.AddSubmitted("ana", "old#0#0123456789abcdef", 8);
  EXPECT_TRUE(keys.Find("ana", "new")->IsOf(digest));
  EXPECT_FALSE(keys.Find("ana", "new")->IsOf(other));
  EXPECT_TRUE(keys.Find("ana", "old")->IsOf(digest));
  EXPECT_TRUE(keys.Find("ana", "old")->IsOf(other));
}

}  // namespace
}  // namespace muster::state

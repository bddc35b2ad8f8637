#include "model/event.h"

#include <gtest/gtest.h>

#include "model/event_fields.h"

namespace muster::model {
namespace {

Job SomeJob() {
  return DecodeJob(
             "name: train\nqueue: vision\nworkers: 2..4\ngpus: 1\nmemory: 2Gi\n"
             "command: [python3, t.py]\nenv: {A: \"1\"}\nafter: [x:any]\narray: 0-9%3\n")
      .value();
}

TEST(Event, EveryKindSurvivesItsBytes) {
  const auto round_trip = [](const EventBody& body) {
    const auto bytes = EncodeEvent(body);
    const auto back = DecodeEvent(bytes);
    ASSERT_TRUE(back.has_value()) << KindOf(body);
    EXPECT_EQ(EncodeEvent(*back), bytes) << KindOf(body);
    EXPECT_EQ(KindOf(*back), KindOf(body));
  };
  round_trip(JobSubmitted{7,
                          std::make_shared<Job>(SomeJob()),
                          "ana",
                          1000,
                          100,
                          {{3, AfterCondition::kFailed}},
                          "key"});
  round_trip(WorkerPlaced{7, 2, 3, "node-1", 0x8000000000000001ULL, ActionKind::kGrow});
  ExitFacts exit;
  exit.exit_code = 3;
  exit.failure = "no such file";
  round_trip(WorkerEnded{7, 2, 3, exit});
  Node node;
  node.name = "n";
  node.gpus.resize(2);
  node.labels["rack"] = "r1";
  round_trip(NodeJoined{node});
  round_trip(PolicyApplied{3, "gentle", "by day", {{"grow", "off"}}, "root", 2, 1});
  round_trip(UseNoted{{{"a", -5}, {"b", 1LL << 62}}});
  round_trip(JobResized{7, 1'700'000'000'000, 4, 35, 120});
  round_trip(NumbersSkipped{77});
  round_trip(UserSet{"ana", "admin", {"vision", "speech"}, "root"});
  round_trip(UserRemoved{"ana", "root"});
  round_trip(TokenMade{"k3f", "laptop", "ana", "9f86d0", 1'900'000'000'000, "viewer", "ana"});
  round_trip(TokenRevoked{"k3f", "ana"});
  round_trip(RequestAnswered{"ana", "key", "9f86", "job 7", 201, "{}"});
  round_trip(ReservationSet{{"demo", "vision", 5, 9, {{"n0", 8}, {"n1", 4}}, "for ana"}, "root"});
  round_trip(ReservationRemoved{"demo", "vision", "musterd", "over"});
}

TEST(Event, AJobComesBackEqual) {
  const auto job = SomeJob();
  const auto back =
      DecodeEvent(EncodeEvent(JobSubmitted{1, std::make_shared<Job>(job), "", 0, 0, {}, ""}));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*std::get<JobSubmitted>(*back).spec, job);
}

TEST(Event, ACutRecordIsRefusedOrLeavesDefaultsButNeverCrashes) {
  const auto bytes =
      EncodeEvent(JobSubmitted{7, std::make_shared<Job>(SomeJob()), "ana", 1, 1, {}, ""});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    (void)DecodeEvent(std::string_view(bytes).substr(0, size));
  }
  EXPECT_FALSE(DecodeEvent("").has_value());
  EXPECT_FALSE(DecodeEvent("\x7e").has_value());
}

TEST(Event, PeopleSeeNamesNotNumbers) {
  const auto node = EventToNode(WorkerLeaving{7, 0, StopWhy::kPaused, Rule::kReclaimQuota, 9, 60});
  EXPECT_EQ(node.Find("why")->text, "paused");
  EXPECT_EQ(node.Find("rule")->text, "reclaim-quota");
  EXPECT_EQ(node.Find("cause")->text, "9");
}

// The numbers are in every journal that was ever written.
TEST(Event, AKindKeepsItsNumberAndItsName) {
  EXPECT_EQ(EventBody(UseNoted{}).index(), 18U);
  const std::vector<std::pair<EventBody, std::string>> added = {{UserSet{}, "user-set"},
                                                                {UserRemoved{}, "user-removed"},
                                                                {TokenMade{}, "token-made"},
                                                                {TokenRevoked{}, "token-revoked"}};
  EXPECT_EQ(EventBody(RequestAnswered{}).index(), 25U);
  EXPECT_EQ(EventBody(PolicyApplied{}).index(), 27U);
  EXPECT_EQ(EventBody(JobResized{}).index(), 30U);
  std::size_t number = 20;
  for (const auto& [body, name] : added) {
    EXPECT_EQ(body.index(), number++);
    EXPECT_EQ(KindOf(body), name);
    EXPECT_EQ(JobOf(body), 0U);
  }
}

TEST(Event, TheKeyOfARequestIsItsSendersAlone) {
  const auto answered = EventToNode(RequestAnswered{"ana", "key", "9f86", "job 7", 201, "{}"});
  EXPECT_EQ(answered.Find("object")->text, "job 7");
  for (const char* hidden : {"key", "digest", "answer"}) EXPECT_EQ(answered.Find(hidden), nullptr);
  const auto submitted =
      EventToNode(JobSubmitted{7, std::make_shared<Job>(SomeJob()), "ana", 1, 1, {}, "key#0#9f86"});
  EXPECT_EQ(submitted.Find("key"), nullptr);
}

TEST(Event, TheHashOfATokenIsKeptAndShownToNobody) {
  const EventBody made = TokenMade{"k3f", "laptop", "ana", "9f86d0", 0, "", "ana"};
  EXPECT_EQ(std::get<TokenMade>(DecodeEvent(EncodeEvent(made)).value()).hash, "9f86d0");
  const auto node = EventToNode(made);
  EXPECT_EQ(node.Find("id")->text, "k3f");
  EXPECT_EQ(node.Find("hash"), nullptr);
  EXPECT_EQ(std::get<TokenMade>(made).hash, "9f86d0");
}

}  // namespace
}  // namespace muster::model

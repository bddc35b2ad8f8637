#include "control/reservations.h"

#include <gmock/gmock.h>

namespace muster::control {
namespace {

using model::ReservedPart;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kNow = 1'800'000'000'000;

class ReservationsTest : public testing::Test {
 protected:
  ReservationsTest() {
    model::Queue queue;
    queue.name = "vision";
    Happen(model::QueuesApplied{{queue}, "admin"});
    AddNode("a4", 4, "T4");
    AddNode("b8", 8, "H100");
    AddNode("c8", 8, "H100");
  }
  void Happen(model::EventBody body) { state_.Fold({kNow, std::move(body)}); }
  void AddNode(const std::string& name, std::size_t gpus, const std::string& type) {
    model::Node node;
    node.name = name;
    node.gpus.resize(gpus);
    for (auto& gpu : node.gpus) gpu.type = type;
    Happen(model::NodeJoined{node});
  }
  static ReservationWish Wish(int gpus, std::int64_t from_hours = 1, std::int64_t to_hours = 2) {
    ReservationWish wish;
    wish.name = "demo";
    wish.queue = "vision";
    wish.from_ms = kNow + from_hours * kHour;
    wish.to_ms = kNow + to_hours * kHour;
    wish.gpus = gpus;
    return wish;
  }
  // Its places; empty: refused.
  std::vector<ReservedPart> Parts(const ReservationWish& wish) {
    const auto booked = Book(state_, wish, kNow);
    return booked ? booked->parts : std::vector<ReservedPart>{};
  }
  Error Refusal(const ReservationWish& wish) {
    const auto booked = Book(state_, wish, kNow);
    return booked ? Error{} : booked.error();
  }
  void Stands(const std::string& name, std::int64_t from_hours, std::int64_t to_hours,
              std::vector<ReservedPart> parts) {
    Happen(model::ReservationSet{
        {name, "", kNow + from_hours * kHour, kNow + to_hours * kHour, std::move(parts), ""},
        "admin"});
  }

  state::State state_;
};

TEST_F(ReservationsTest, WholeNodesAreTakenFirstAndTheRestFromTheSmallestThatHasIt) {
  EXPECT_THAT(Parts(Wish(8)), ElementsAre(ReservedPart{"b8", 8}));
  EXPECT_THAT(Parts(Wish(12)), ElementsAre(ReservedPart{"a4", 4}, ReservedPart{"b8", 8}));
  EXPECT_THAT(Parts(Wish(3)), ElementsAre(ReservedPart{"a4", 3}));
  EXPECT_THAT(Parts(Wish(20)),
              ElementsAre(ReservedPart{"a4", 4}, ReservedPart{"b8", 8}, ReservedPart{"c8", 8}));
  auto typed = Wish(10);
  typed.gpu_type = "H100";
  EXPECT_THAT(Parts(typed), ElementsAre(ReservedPart{"b8", 8}, ReservedPart{"c8", 2}));
}

TEST_F(ReservationsTest, NodesThatAreDownOrCordonedAreNotChosenButMayBeNamed) {
  Happen(model::NodeWent{"b8", false, "gone"});
  Happen(model::NodeMarked{"c8", true, false, "admin"});
  EXPECT_THAT(Refusal(Wish(8)).message, HasSubstr("have 4, of which 0 are reserved"));
  auto named = Wish(0);
  named.nodes = {"c8", "b8"};
  EXPECT_THAT(Parts(named), ElementsAre(ReservedPart{"b8", 8}, ReservedPart{"c8", 8}));
  named.gpus = 9;
  EXPECT_THAT(Parts(named), ElementsAre(ReservedPart{"b8", 8}, ReservedPart{"c8", 1}));
}

TEST_F(ReservationsTest, WhatAnotherKeepsAtThatTimeIsNotKeptTwice) {
  Stands("early", 1, 2, {{"b8", 6}});
  Stands("late", 2, 3, {{"b8", 6}});
  EXPECT_THAT(Parts(Wish(8)), ElementsAre(ReservedPart{"c8", 8}));
  EXPECT_THAT(Parts(Wish(8, 3, 4)), ElementsAre(ReservedPart{"b8", 8})) << "at another time";
  // The two others follow each other, so that two GPUs are free all the time.
  EXPECT_THAT(Parts(Wish(14, 1, 3)),
              ElementsAre(ReservedPart{"a4", 4}, ReservedPart{"b8", 2}, ReservedPart{"c8", 8}));
  const auto refusal = Refusal(Wish(15, 1, 3));
  EXPECT_EQ(refusal.path, "gpus");
  EXPECT_THAT(refusal.message, HasSubstr("have 20, of which 6 are reserved already"));
  auto named = Wish(0);
  named.nodes = {"b8"};
  EXPECT_THAT(Refusal(named).message, HasSubstr("node b8 has 8 GPUs, of which 6 are reserved"));
  auto same = Wish(8);
  same.name = "early";
  EXPECT_THAT(Parts(same), ElementsAre(ReservedPart{"b8", 8})) << "it replaces itself";
}

TEST_F(ReservationsTest, WhatCannotBeMeantIsRefusedByItsKey) {
  EXPECT_EQ(Refusal(Wish(1)).message, "");
  EXPECT_EQ(Refusal(Wish(1, 2, 2)).path, "to");
  EXPECT_THAT(Refusal(Wish(1, -2, 0)).message, HasSubstr("is past"));
  EXPECT_EQ(Refusal(Wish(1, 24 * 367, 24 * 368)).path, "from");
  EXPECT_EQ(Refusal(Wish(0)).path, "gpus");
  auto wish = Wish(1);
  wish.queue = "visoin";
  EXPECT_THAT(Refusal(wish).hint, HasSubstr("vision"));
  wish = Wish(1);
  wish.name = "a b";
  EXPECT_EQ(Refusal(wish).path, "name");
  wish = Wish(1);
  wish.nodes = {"b9"};
  EXPECT_EQ(Refusal(wish).path, "nodes");
  wish.nodes = {"b8"};
  wish.gpu_type = "T4";
  EXPECT_EQ(Refusal(wish).path, "gpu_type");
  AddNode("cpu", 0, "");
  wish = Wish(0);
  wish.nodes = {"cpu"};
  EXPECT_THAT(Refusal(wish).message, HasSubstr("has no GPUs"));
}

TEST_F(ReservationsTest, ThereIsAMostAndOneThatIsThereMayStillBeChanged) {
  for (std::size_t i = 0; i < kMostReservations; ++i) {
    Stands("r" + std::to_string(i), 1, 2, {{"a4", 0}});
  }
  EXPECT_EQ(Refusal(Wish(1)).code, ErrorCode::kConflict);
  auto known = Wish(1);
  known.name = "r7";
  EXPECT_EQ(Refusal(known).message, "");
}

}  // namespace
}  // namespace muster::control

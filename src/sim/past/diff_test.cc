#include "sim/past/diff.h"

#include "model/document_writer.h"
#include "sim/past/past_fixture.h"

namespace muster::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DiffTest : public PastFixture {
 protected:
  DiffTest() {
    Add({.queue = "a", .least = 4, .most = 4, .seconds = 100, .priority = 10});
    Add({.queue = "a", .at_s = 40, .least = 4, .most = 4, .seconds = 10, .priority = 90});
    old_.preempt = false;
  }
  Diff Run() { return Compare(past_, Play(old_), Play(new_)); }

  engine::Policy old_, new_;
};

TEST_F(DiffTest, ThePolicyAgainstItselfShowsNoDifference) {
  new_ = old_;
  const auto diff = Run();
  EXPECT_EQ(diff.jobs, 2);
  EXPECT_THAT(diff.gain, IsEmpty());
  EXPECT_THAT(diff.lose, IsEmpty());
  EXPECT_EQ(diff.before.figures.wait_s, diff.after.figures.wait_s);
  EXPECT_EQ(diff.before.utilisation_pct, diff.after.utilisation_pct);
}

TEST_F(DiffTest, ItSaysWhoGainsAndWhoPays) {
  const auto diff = Run();
  ASSERT_THAT(diff.gain, SizeIs(1));
  EXPECT_EQ(diff.gain[0].id, 2U);
  EXPECT_EQ(diff.gain[0].before_wait_s, 60);
  EXPECT_EQ(diff.gain[0].after_wait_s, 0);
  ASSERT_THAT(diff.lose, SizeIs(1));
  EXPECT_EQ(diff.lose[0].before_s, 100);
  EXPECT_EQ(diff.lose[0].after_s, 150);
  EXPECT_EQ(diff.after.figures.pauses, 1);
  EXPECT_DOUBLE_EQ(diff.after.figures.lost_gpu_hours, 160.0 / 3600);
  EXPECT_DOUBLE_EQ(diff.before.utilisation_pct, 100.0 * 110 / 150) << "over the same stretch";
  ASSERT_THAT(diff.queues, SizeIs(1));
  EXPECT_EQ(diff.queues[0].before.wait_s, 30);
  EXPECT_EQ(diff.users[0].name, "u-a");
}

TEST_F(DiffTest, BesideTheOldPolicyStandsWhatReallyHappened) {
  past_.recorded = true;
  past_.to_ms = 200'000;
  past_.jobs[0].truth = {10'000, 120'000, 110'000, 4'000, 0};
  past_.jobs[1].truth = {120'000, 130'000, 10'000, 4'000, 0};
  const auto diff = Run();
  EXPECT_EQ(diff.truth.figures.wait_s, (10 + 80) / 2.0);
  EXPECT_EQ(diff.truth.figures.completion_s, (120 + 90) / 2.0);
  EXPECT_DOUBLE_EQ(diff.truth.utilisation_pct, 60);
  EXPECT_THAT(model::WriteJson(DiffToNode(diff)), HasSubstr("\"recorded\""));
}

TEST_F(DiffTest, WhatWasThereBeforeTakesUpRoomAndIsNotCounted) {
  past_.jobs[0].counted = false;
  const auto diff = Run();
  EXPECT_EQ(diff.jobs, 1);
  EXPECT_EQ(diff.carried_over, 1);
  EXPECT_EQ(diff.before.figures.wait_s, 60) << "it waits for it all the same";
  EXPECT_THAT(diff.lose, IsEmpty());
}

TEST_F(DiffTest, AJobThatCannotEndIsToldApart) {
  Add({.queue = "b", .least = 8, .most = 8});
  EXPECT_EQ(Run().not_compared, 1);
}

}  // namespace
}  // namespace muster::sim

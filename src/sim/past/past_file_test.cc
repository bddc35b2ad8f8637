#include "sim/past/past_file.h"

#include "model/document_writer.h"
#include "sim/past/diff.h"
#include "sim/past/past_fixture.h"

namespace muster::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PastFileTest : public PastFixture {
 protected:
  PastFileTest() {
    Add({.queue = "a", .least = 2, .most = 4, .seconds = 600});
    Add({.queue = "b", .at_s = 30, .most = 4, .seconds = 60, .priority = 90});
    auto& last = Add({.queue = "b", .at_s = 60, .seconds = 10});
    auto spec = *last.spec;
    spec.after = {{"job", model::AfterCondition::kAny}};
    spec.command = {"train", "--password=hidden"};
    spec.env = {{"TOKEN", "hidden"}};
    last.spec = std::make_shared<const model::Job>(std::move(spec));
    state::SpeedRecord speed;
    speed.latest.gpus = 2;
    speed.latest.compute_us = 1'000;
    speed.latest.step_us = 2'000;
    speed.told = {speed.latest};
    past_.jobs[0].speed = std::make_shared<const state::SpeedRecord>(std::move(speed));
    past_.jobs[0].expected_ms = 5'000;
    past_.jobs[0].truth = {1, 2, 3, 4, 5};
    past_.recorded = true;
    Finish(past_);
  }
};

TEST_F(PastFileTest, WhatIsReadIsWhatWasSavedAndIsPlayedAlike) {
  const auto read = DecodePast(EncodePast({past_, {{"grow", "off"}}}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->policy, (engine::SettingValues{{"grow", "off"}}));
  ASSERT_EQ(read->past.jobs.size(), 3U);
  EXPECT_EQ(read->past.nodes, past_.nodes);
  EXPECT_EQ(read->past.jobs[0].truth.pauses, 5);
  EXPECT_EQ(read->past.jobs[0].speed->latest.gpus, 2);
  EXPECT_EQ(read->past.jobs[2].after, past_.jobs[2].after);
  const auto diff = [](const Past& past, const Played& played) {
    return model::WriteJson(DiffToNode(Compare(past, played, played)));
  };
  const auto again = PlayPast(read->past, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(diff(read->past, *again), diff(past_, Play()));
}

TEST_F(PastFileTest, WhatJobsRanIsNotInIt) {
  const auto bytes = EncodePast({past_, {}});
  EXPECT_THAT(bytes, Not(HasSubstr("hidden")));
  EXPECT_THAT(bytes, HasSubstr("u-a"));
}

TEST_F(PastFileTest, EveryDamageIsFound) {
  const auto bytes = EncodePast({past_, {}});
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodePast(bytes.substr(0, cut))) << cut;
    auto other = bytes;
    other[cut] = static_cast<char>(other[cut] ^ 1);
    EXPECT_FALSE(DecodePast(other)) << cut;
  }
}

TEST_F(PastFileTest, AnotherVersionIsNamedAsOne) {
  auto bytes = EncodePast({past_, {}});
  bytes.replace(bytes.find('1'), 1, "2");
  EXPECT_THAT(DecodePast(bytes).error().message, HasSubstr("another version"));
}

TEST_F(PastFileTest, WhatNoClusterHasIsRefused) {
  const auto refused = [this](auto spoil) {
    auto past = past_;
    auto spec = *past.jobs[0].spec;
    spoil(past, spec);
    past.jobs[0].spec = std::make_shared<const model::Job>(std::move(spec));
    return !DecodePast(EncodePast({std::move(past), {}}));
  };
  EXPECT_FALSE(refused([](Past&, model::Job&) {}));
  EXPECT_TRUE(refused([](Past&, model::Job& spec) { spec.roles[0].group = 7; }));
  EXPECT_TRUE(refused([](Past&, model::Job& spec) { spec.roles[0].count = 1 << 30; }));
  EXPECT_TRUE(refused([](Past&, model::Job& spec) { spec.groups.clear(); }));
  EXPECT_TRUE(refused([](Past& past, model::Job&) { past.jobs[0].roles = {1}; }));
  EXPECT_TRUE(refused([](Past& past, model::Job&) { past.jobs[1].id = past.jobs[0].id; }));
  EXPECT_TRUE(refused([](Past& past, model::Job&) { past.jobs[0].submitted_ms = INT64_MAX; }));
  EXPECT_TRUE(refused([](Past& past, model::Job&) { past.jobs[0].work = INT64_MAX; }));
  EXPECT_TRUE(refused([](Past& past, model::Job&) { past.nodes[0].gpus.resize(65); }));
}

}  // namespace
}  // namespace muster::sim

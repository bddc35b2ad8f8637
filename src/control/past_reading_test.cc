// The production controller runs a day with a simulated pool; the journal is then replayed, and
// what comes out is held against what happened.
#include "control/past_reading.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "pools/simulated/simulated_pool.h"
#include "sim/past/diff.h"
#include "state/sqlite_store.h"

namespace muster::control {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

class PastReadingTest : public testing::Test {
 protected:
  PastReadingTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("muster-past-" + std::to_string(::getpid()))),
        store_(Open(folder_)),
        pool_(Lab(), clock_),
        control_({clock_, *store_, {&pool_}}, Settings{}) {
    clock_.Advance(100 * kHourMs);  // no time is 0
    EXPECT_TRUE(control_.Recover());
    model::Queue ana, ben;
    ana.name = "ana";
    ben.name = "ben";
    EXPECT_TRUE(control_.ApplyQueues({ana, ben}, "root"));
    EXPECT_TRUE(control_.Turn());
  }
  ~PastReadingTest() override { std::filesystem::remove_all(folder_); }

  static std::unique_ptr<state::Store> Open(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    auto store = state::OpenSqlite((folder / "journal.db").string());
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  static model::Pool Lab() {
    model::Pool pool;
    pool.name = "lab";
    pool.driver = model::PoolDriver::kSimulated;
    model::NodeGroup group;
    group.count = 2;
    group.gpus = 4;
    pool.nodes.push_back(group);
    return pool;
  }

  JobNumber Submit(const std::string& queue, int least, int most, int seconds,
                   std::int64_t priority = 50) {
    Submission submission;
    auto& spec = submission.spec;
    spec.name = "job";
    spec.queue = queue;
    spec.priority = priority;
    spec.command = {"sleep", std::to_string(seconds)};
    spec.groups.emplace_back().minimum = least;
    auto& role = spec.roles.emplace_back();
    role.name = "worker";
    role.count = most;
    role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    submission.user = queue;
    auto made = control_.Submit(std::move(submission));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made.value_or(0);
  }
  void Pass(std::int64_t ms) {
    const auto until = clock_.WallMs() + ms;
    while (clock_.WallMs() < until) {
      ASSERT_TRUE(control_.Turn());
      clock_.Advance(100);
    }
  }
  sim::Past Read(std::int64_t back_ms = kHourMs) {
    PastReading reading(back_ms);
    for (;;) {
      const auto done = reading.Add(control_);
      EXPECT_TRUE(done) << (done ? "" : done.error().message);
      if (!done || *done) return reading.Take();
    }
  }

  ManualClock clock_;
  std::filesystem::path folder_;
  std::unique_ptr<state::Store> store_;
  pools::SimulatedPool pool_;
  Controller control_;
};

// One run of sixty jobs, and its replay.
class Sixty : public PastReadingTest {
 public:
  void TestBody() override {}
  sim::Diff Replay(std::uint32_t chance, const engine::SettingValues& settings);
};

sim::Diff Sixty::Replay(std::uint32_t chance, const engine::SettingValues& settings) {
  EXPECT_TRUE(control_.ApplyPolicy({"", "", settings}, "root"));
  const auto draw = [&chance](std::uint32_t below) {
    chance = chance * 1'664'525 + 1'013'904'223;
    return (chance >> 16) % below;
  };
  for (int i = 0; i < 60; ++i) {
    const int workers = 1 << draw(4);
    const auto* queue = draw(2) == 0 ? "ana" : "ben";
    const int seconds = 20 + static_cast<int>(draw(100));
    Submit(queue, workers, workers, seconds, draw(5) == 0 ? 90 : 50);
    Pass(1'000 * draw(40));
  }
  Pass(kHourMs / 2);
  const auto past = Read(2 * kHourMs);
  EXPECT_EQ(past.jobs.size(), 60U);
  const auto played = sim::PlayPast(past, *engine::ApplySettings(settings));
  EXPECT_TRUE(played);
  return sim::Compare(past, *played, *played);
}

// Who is decided otherwise once, because somebody left half a second later, moves all behind it. So
// what is near to what happened are sums, not jobs.
void ReplaysComeNear(const engine::SettingValues& settings, double runs_within, double all_within) {
  double waits = 0, true_waits = 0;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    Sixty sixty;
    const auto diff = sixty.Replay(seed, settings);
    EXPECT_EQ(diff.jobs, 60);
    const auto &ours = diff.before.figures, &truth = diff.truth.figures;
    EXPECT_GT(truth.wait_s, 30) << "there is something to compare";
    EXPECT_NEAR(ours.wait_s, truth.wait_s, truth.wait_s * runs_within);
    EXPECT_NEAR(ours.completion_s, truth.completion_s, truth.completion_s * runs_within);
    EXPECT_NEAR(diff.before.utilisation_pct, diff.truth.utilisation_pct, 3);
    waits += ours.wait_s;
    true_waits += truth.wait_s;
  }
  EXPECT_NEAR(waits, true_waits, true_waits * all_within);
}

TEST(Replay, OfWhatRanComesNearToWhatHappened) { ReplaysComeNear({{"reserve", "off"}}, 0.1, 0.05); }

TEST(Replay, OfWhatRanWithReservationsComesNearToWhatHappened) { ReplaysComeNear({}, 0.25, 0.1); }

TEST_F(PastReadingTest, AnElasticJobDidWhatItsSizesDid) {
  const auto wide = Submit("ana", 1, 8, 100);
  Pass(50'000);
  const auto other = Submit("ben", 4, 4, 1'000);
  Pass(100'000);  // its own four have ended by then
  EXPECT_TRUE(control_.state().Find(wide)->ending);
  const auto past = Read();
  ASSERT_EQ(past.jobs.size(), 2U);
  // Eight for 50 s, then four, of which the others leave within half a second.
  EXPECT_NEAR(static_cast<double>(past.jobs[0].work) / 1e6, 8 * 50 + 4 * 50, 10);
  EXPECT_EQ(past.still_there, 1) << "job " << other << " has not ended";
  EXPECT_NEAR(static_cast<double>(past.jobs[1].work) / 1e6, 4 * 99, 10);
}

TEST_F(PastReadingTest, WhatNeverRanIsLeftOutAndWhatCameBeforeOnlyTakesUpRoom) {
  Submit("ana", 8, 8, 300);
  Pass(200'000);
  const auto never = Submit("ben", 8, 8, 10, 10);
  Pass(1'000);
  EXPECT_TRUE(control_.Cancel(never, "root"));
  Pass(120'000);
  const auto past = Read(150'000);
  EXPECT_EQ(past.left_out, 1);
  ASSERT_EQ(past.jobs.size(), 1U);
  EXPECT_FALSE(past.jobs[0].counted);
  EXPECT_EQ(past.to_ms - past.from_ms, 150'000);
  EXPECT_EQ(Read(90 * 24 * kHourMs).from_ms, past.jobs[0].submitted_ms) << "nothing was before it";
}

TEST_F(PastReadingTest, WhoStartedOverDidOnlyWhatTheLastStartDid) {
  Submit("ana", 8, 8, 60, 10);
  Pass(30'000);
  Submit("ana", 8, 8, 10, 90);
  Pass(120'000);
  const auto past = Read();
  ASSERT_EQ(past.jobs.size(), 2U);
  EXPECT_EQ(past.jobs[0].truth.pauses, 1);
  EXPECT_NEAR(static_cast<double>(past.jobs[0].work) / 1e6, 8 * 60, 8);
}

}  // namespace
}  // namespace muster::control

#include "shim/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/files.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;

class ReportsTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir_);
    clock_.Advance(100'000);
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Later(std::int64_t ms) {
    clock_.Advance(ms);
    reports_.Keep(Now());
  }
  std::int64_t Now() { return clock_.MonotonicNs() / 1'000'000; }
  contract::Report Written() {
    return contract::DecodeReport(ReadFile((dir_ / "a.report").string()).value_or(""))
        .value_or(contract::Report{});
  }

  fs::path dir_ = fs::temp_directory_path() / ("muster-reports-" + std::to_string(getpid()));
  ManualClock clock_;
  Spool spool_{dir_.string(), "a"};
  Reports reports_{spool_, clock_, "a"};
};

TEST_F(ReportsTest, NothingIsDueWhileNothingIsNew) {
  EXPECT_FALSE(reports_.due_ms().has_value());
  reports_.Typed();
  Later(0);
  EXPECT_FALSE(reports_.due_ms().has_value());
  reports_.Conclude();
  EXPECT_FALSE(spool_.waiting());
}

TEST_F(ReportsTest, AKeptModelStaysBesideTheReports) {
  reports_.Hear(contract::Kept{"/ckpt/model.safetensors", "00ff", {{"test_loss", 0.25}}});
  Later(0);
  reports_.Hear(contract::Progress{7, {}, {}, {{"loss", 0.5}}});
  Later(2'000);
  EXPECT_EQ(Written().kept_path, "/ckpt/model.safetensors");
  EXPECT_EQ(Written().kept_hash, "00ff");
  EXPECT_EQ(Written().kept_numbers.at("test_loss"), 0.25);
  EXPECT_EQ(Written().step, 7);
}

TEST_F(ReportsTest, OfManyCheckpointsOneASecondIsToldAndTheLastIsNotLost) {
  const auto told = [this] {
    std::vector<std::int64_t> steps;
    for (const auto& entry : fs::directory_iterator(dir_)) {
      const auto record = contract::DecodeCheckpoint(ReadFile(entry.path().string()).value_or(""));
      if (record) steps.push_back(record->step);
    }
    std::sort(steps.begin(), steps.end());
    return steps;
  };
  for (std::int64_t step = 1; step <= 50; ++step) {
    reports_.Hear(contract::Checkpointed{step, "ckpt", INT64_MAX});
    Later(10);
  }
  EXPECT_THAT(told(), testing::ElementsAre(1)) << "and half a second later no more";
  Later(1'000);
  EXPECT_EQ(told().back(), 50);
  reports_.Hear(contract::Checkpointed{51, "ckpt", 0});
  reports_.Conclude();
  spool_.Flush();
  EXPECT_EQ(told().back(), 51);
}

TEST_F(ReportsTest, ChangesOfSizeAreKeptApartAndTheOldestGo) {
  for (int workers = 1; workers <= 20; ++workers) {
    reports_.Hear(contract::Resized{workers, 10 * workers, {}});  // all of one millisecond
  }
  Later(0);
  const auto sizes = Written().sizes;
  ASSERT_EQ(sizes.size(), contract::kSizesReported);
  EXPECT_EQ(sizes.front().workers, 5);
  EXPECT_EQ(sizes.back(), (contract::SizeRecord{sizes[14].at_ms + 1, 20, 200, -1}));
}

TEST_F(ReportsTest, KeysAreWrittenOnceInFiveSecondsAndTheLastIsNotLost) {
  reports_.Typed();
  Later(0);
  EXPECT_EQ(Written().last_input_ms, 100'000);
  Later(1'000);
  reports_.Typed();
  Later(3'999);
  EXPECT_EQ(Written().last_input_ms, 100'000);
  EXPECT_EQ(reports_.due_ms(), 105'000);
  Later(1);
  EXPECT_EQ(Written().last_input_ms, 101'000);
  EXPECT_EQ(Written().at_ms, 0);
}

TEST_F(ReportsTest, ReportsAreWrittenOnceASecondAndTakeTheKeysAlong) {
  reports_.Hear(contract::Progress{1, {}, {}, {}});
  Later(0);
  reports_.Typed();
  reports_.Hear(contract::Progress{2, {}, {}, {}});
  Later(999);
  EXPECT_EQ(Written().step, 1);
  Later(1);
  EXPECT_EQ(Written().step, 2);
  EXPECT_EQ(Written().last_input_ms, 100'000);
}

TEST_F(ReportsTest, WhatTheSpoolRefusedIsTriedAgain) {
  fs::remove_all(dir_);
  reports_.Typed();
  Later(0);
  EXPECT_TRUE(reports_.due_ms().has_value());
  fs::create_directories(dir_);
  Later(1'000);
  EXPECT_EQ(Written().last_input_ms, 100'000);
  EXPECT_FALSE(reports_.due_ms().has_value());
}

}  // namespace
}  // namespace muster::shim

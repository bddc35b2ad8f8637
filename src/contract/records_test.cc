#include "contract/records.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace muster::contract {
namespace {

TEST(Records, StartAndExitSurviveTheirCodec) {
  EXPECT_TRUE(rc::check([](std::int64_t time_ms, int pid, bool oom, bool stopped) {
    const StartRecord start{"17.0.2", pid, time_ms, "cgroup v1"};
    RC_ASSERT(DecodeStart(Encode(start)) == start);
    ExitRecord exit;
    exit.launch = "17.0.2";
    exit.pid = pid;
    exit.signal = 9;
    exit.oom = oom;
    exit.stopped = stopped;
    exit.failure = "cannot run \"trian.py\"\n";
    exit.ended_ms = time_ms;
    exit.log_bytes_dropped = time_ms;
    RC_ASSERT(DecodeExit(Encode(exit)) == exit);
  }));
}

TEST(Records, ReportsKeepTheirNumbersToTheLastBit) {
  EXPECT_TRUE(rc::check([](const std::map<std::string, double>& drawn, std::int64_t step) {
    Report report;
    report.launch = "a";
    report.step = step;
    report.last_input_ms = step;
    report.ready = true;
    if (step % 2 == 0) report.sizes = {{step, 4, 35, 120}, {step, 2, 0, -1}};
    for (const auto& [name, value] : drawn) {
      if (std::isfinite(value)) report.numbers["n" + std::to_string(report.numbers.size())] = value;
    }
    report.kept_path = *rc::gen::element<std::string>("", "/ckpt/model.safetensors");
    if (!report.kept_path.empty()) {
      report.kept_hash = "00ff";
      report.kept_numbers = report.numbers;
    }
    RC_ASSERT(DecodeReport(Encode(report)) == report);
  }));
}

TEST(Records, ALossThatIsNoNumberArrives) {
  Report report;
  report.launch = "a";
  report.numbers = {{"loss", NAN}, {"norm", HUGE_VAL}, {"low", -HUGE_VAL}};
  const auto again = DecodeReport(Encode(report));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_TRUE(std::isnan(again->numbers.at("loss")));
  EXPECT_EQ(again->numbers.at("norm"), HUGE_VAL);
  EXPECT_EQ(again->numbers.at("low"), -HUGE_VAL);
}

TEST(Records, CheckpointsSurviveTheirCodec) {
  const CheckpointRecord record{"a", 1200, "/ckpt/1200.pt", 1'700'000'000'000};
  EXPECT_EQ(DecodeCheckpoint(Encode(record)), record);
}

TEST(Records, ATornRecordIsAnError) {
  ExitRecord exit;
  exit.launch = "17.0.2";
  const auto whole = Encode(exit);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeExit(whole.substr(0, size)).has_value()) << size;
  }
}

TEST(Records, WhatIsMissingOrNewerIsNamed) {
  EXPECT_EQ(DecodeExit(R"({"version":1,"launch":"a"})").error().message,
            "exit record: pid: missing");
  EXPECT_EQ(DecodeStart(R"({"version":1,"launch":"","pid":1,"at_ms":1})").error().message,
            "start record: launch: is no name of a launch");
  EXPECT_EQ(DecodeReport(R"({"version":9})").error().message,
            "report has contract version 9; this program knows up to 1");
}

}  // namespace
}  // namespace muster::contract

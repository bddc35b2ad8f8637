#include "contract/order.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

namespace muster::contract {
namespace {

LaunchOrder Small() {
  LaunchOrder order;
  order.launch = "17.0.2";
  order.run_dir = "/run/w";
  order.spool_dir = "/spool";
  order.log_dir = "/log";
  order.command = {"python3", "train.py"};
  return order;
}

// What the reader says about an order in which one field was replaced.
std::string Fault(const std::string& key, const nlohmann::json& value) {
  auto object = nlohmann::json::parse(Encode(Small()));
  object[key] = value;
  const auto decoded = DecodeOrder(object.dump());
  return decoded ? "" : decoded.error().message;
}

TEST(Order, AnyValidOrderSurvivesItsCodec) {
  const auto text = [] { return *rc::gen::string<std::string>(); };
  const auto whole = [] { return std::int64_t{*rc::gen::inRange(0, 2'000'000'000)} * 4000; };
  EXPECT_TRUE(rc::check([&] {
    auto order = Small();
    const auto ascii = [&] {
      std::string out = text();
      for (auto& c : out) c = static_cast<char>('\x01' + (static_cast<unsigned char>(c) % 0x7e));
      return out;
    };
    order.command.push_back(ascii());
    order.workdir = "/" + ascii();
    order.env["KEY"] = ascii();
    order.rank = *rc::gen::inRange(0, 5000);
    order.memory_bytes = whole();
    order.cpu_milli = whole();
    order.cpu_is_weight = *rc::gen::arbitrary<bool>();
    order.cores = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 512));
    order.grace_ms = whole();
    order.terminal = *rc::gen::arbitrary<bool>();
    order.rows = *rc::gen::inRange(1, 65'536);
    order.cols = *rc::gen::inRange(1, 65'536);
    order.exec_prefix = {"podman", "exec", ascii()};
    order.exec_terminal_prefix = {"podman", "exec", "-t", ascii()};
    if (*rc::gen::arbitrary<bool>()) {
      order.user = User{*rc::gen::arbitrary<std::uint32_t>(), 7, {1, 4'000'000'000U}};
    }
    const auto again = DecodeOrder(Encode(order));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == order);
  }));
}

TEST(Order, WhatIsLeftOutHasTheDefault) {
  const auto decoded = DecodeOrder(
      R"({"version":1,"launch":"a","run_dir":"/r","spool_dir":"/s","log_dir":"/l",
          "command":["true"],"of_a_later_release":[1]})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->log_bytes, 64 << 20);
  EXPECT_EQ(decoded->grace_ms, 30'000);
  EXPECT_FALSE(decoded->user.has_value());
}

TEST(Order, SaysWhichFieldIsWrong) {
  EXPECT_EQ(Fault("rank", 1), "");
  EXPECT_EQ(Fault("launch", nullptr), "launch order: launch: missing");
  EXPECT_EQ(
      Fault("launch", "../etc"),
      "launch order: launch: must be 1 to 200 letters, digits, '.', '_' or '-', no dot first");
  EXPECT_EQ(Fault("run_dir", "run"), "launch order: run_dir: must be an absolute path");
  EXPECT_EQ(Fault("workdir", std::string("/a\0b", 4)),
            "launch order: workdir: must be an absolute path");
  EXPECT_EQ(Fault("command", nlohmann::json::array()), "launch order: command: names no program");
  EXPECT_EQ(Fault("command", {"a", 7}), "launch order: command: must be an array of strings");
  EXPECT_EQ(Fault("env", {{"A=B", "c"}}),
            "launch order: env: \"A=B\" cannot be an environment variable");
  EXPECT_EQ(Fault("log_bytes", 0), "launch order: log_bytes: must be positive");
  EXPECT_EQ(Fault("log_files", 0), "launch order: log_files: must be 1 to 1000");
  EXPECT_EQ(Fault("memory_bytes", -1), "launch order: memory_bytes: must not be negative");
  EXPECT_EQ(Fault("memory_bytes", 1.5), "launch order: memory_bytes: must be a whole number");
  EXPECT_EQ(Fault("memory_bytes", 18446744073709551615ULL),
            "launch order: memory_bytes: must be a whole number");
  EXPECT_EQ(Fault("cores", {-1}), "launch order: cores: -1 is no core");
  EXPECT_EQ(Fault("cgroup_root", "a/b"),
            "launch order: cgroup_root: must be one name of letters, digits, '.', '_' or '-'");
  EXPECT_EQ(Fault("checkpoint_signal", "SIGKILL"),
            "launch order: checkpoint_signal: \"SIGKILL\" is no signal to catch");
  EXPECT_EQ(Fault("rows", 0), "launch order: rows: and cols must be 1 to 65535");
  EXPECT_EQ(Fault("exec_prefix", {"podman"}),
            "launch order: exec_prefix: and exec_terminal_prefix are given together, or neither");
  EXPECT_EQ(Fault("exec_prefix", {std::string("a\0b", 3)}),
            "launch order: exec_prefix: holds a NUL character");
  EXPECT_EQ(Fault("user", {{"uid", 1}}), "launch order: user: gid: missing");
  EXPECT_EQ(Fault("user", {{"uid", -1}, {"gid", 1}}),
            "launch order: user: uid: must be a whole number of 32 bits without sign");
}

TEST(Order, ANewerVersionIsRefusedAndNotMisread) {
  EXPECT_EQ(Fault("version", 2), "launch order has contract version 2; this program knows up to 1");
  EXPECT_EQ(Fault("version", 0), "launch order: version: 0 is no version");
  EXPECT_EQ(Fault("version", nullptr), "launch order: version: missing");
}

TEST(Order, WhatIsNoObjectIsAnError) {
  for (const char* text : {"", "[]", "{", "{\"version\":1}x", "\xff"}) {
    const auto decoded = DecodeOrder(text);
    ASSERT_FALSE(decoded.has_value()) << text;
    EXPECT_EQ(decoded.error().message, "launch order: not a JSON object");
  }
}

}  // namespace
}  // namespace muster::contract

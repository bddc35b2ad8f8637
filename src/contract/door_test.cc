#include "contract/door.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace muster::contract {
namespace {

std::string Fault(std::string_view line) {
  const auto decoded = DecodeDoorRequest(line);
  return decoded ? "" : decoded.error().message;
}

TEST(Door, RequestsSurviveTheirCodec) {
  const DoorRequest attach = Attach{{50, 132}};
  EXPECT_EQ(DecodeDoorRequest(Encode(attach)), attach);
  EXPECT_TRUE(rc::check([](bool terminal, const std::vector<std::uint8_t>& drawn) {
    std::string word;
    for (const auto c : drawn) word += static_cast<char>(1 + c % 0x7e);
    const DoorRequest exec = Exec{{"sh", "-c", word}, terminal, {3, 4}, {{"A", word}}};
    RC_ASSERT(DecodeDoorRequest(Encode(exec)) == exec);
    RC_ASSERT(Encode(exec).find('\n') == Encode(exec).size() - 1);
  }));
}

TEST(Door, WhatIsLeftOutHasTheDefault) {
  EXPECT_EQ(DecodeDoorRequest(R"({"type":"attach","of_a_later_release":1})"),
            DoorRequest(Attach{{24, 80}}));
  EXPECT_EQ(DecodeDoorRequest(R"({"type":"exec","command":["ls"]})"),
            DoorRequest(Exec{{"ls"}, false, {24, 80}, {}}));
}

TEST(Door, SaysWhatIsWrongWithARequest) {
  EXPECT_EQ(Fault("attach"), "request: not a JSON object");
  EXPECT_EQ(Fault("{}"), "request: type: missing");
  EXPECT_EQ(Fault(R"({"type":"open"})"), "request: type: \"open\" is neither attach nor exec");
  EXPECT_EQ(Fault(R"({"type":"attach","rows":0})"), "request: rows: and cols must be 1 to 65535");
  EXPECT_EQ(Fault(R"({"type":"exec"})"), "request: command: missing");
  EXPECT_EQ(Fault(R"({"type":"exec","command":[]})"), "request: command: names no program");
  EXPECT_EQ(Fault(R"({"type":"exec","command":["a\u0000"]})"),
            "request: command: holds a NUL character");
  EXPECT_EQ(Fault(R"({"type":"exec","command":["a"],"env":{"A=":"b"}})"),
            "request: env: \"A=\" cannot be an environment variable");
}

TEST(Door, AShimThatIsGoneIsNotFound) {
  EXPECT_EQ(ConnectDoor("/no/such/folder").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace muster::contract

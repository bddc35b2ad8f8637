#include "contract/lines.h"

#include <gtest/gtest.h>

namespace muster::contract {
namespace {

TEST(Lines, WhatAWorkerSaysSurvivesItsCodec) {
  for (const Said& said :
       {Said{Hello{1, 42}}, Said{Ready{}}, Said{Progress{120, 3, {}, {{"loss", 1.25}}}},
        Said{Checkpointed{120, "/ckpt/120.pt", 7}}, Said{Resized{4, 35, 120}},
        Said{Resized{4, 0, {}}}, Said{Leaving{"out of data"}},
        Said{Kept{"/ckpt/model.safetensors", "00ff", {{"test_loss", 0.25}}}}}) {
    const auto line = Encode(said);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(DecodeSaid(line), said) << line;
  }
}

TEST(Lines, WhatAWorkerIsToldSurvivesItsCodec) {
  for (const Told& told :
       {Told{Welcome{1, "17.0.2", 3, 8, 2, 1, "/ckpt"}},
        Told{Resize{4, {{0, "n1", 29500}, {1, "n2", {}}}}}, Told{AskCheckpoint{1'700'000'000'000}},
        Told{Leave{1000}}, Told{Stop{30'000}}, Told{Refused{"line: type: missing"}}}) {
    const auto line = Encode(told);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(DecodeTold(line), told) << line;
  }
}

TEST(Lines, WholeNumbersMayBeFloatsAndUnknownFieldsAreIgnored) {
  const auto said = DecodeSaid(R"({"type":"report","step":120.0,"host_of_later":{"a":1}})");
  ASSERT_TRUE(said.has_value()) << said.error().message;
  EXPECT_EQ(std::get<Progress>(*said).step, 120);
}

TEST(Lines, SaysWhatIsWrong) {
  const auto fault = [](std::string_view line) { return DecodeSaid(line).error().message; };
  EXPECT_EQ(fault("{}"), "line: type: missing");
  EXPECT_EQ(fault(R"({"type":"welcome"})"), "line: type: \"welcome\" is nothing a worker says");
  EXPECT_EQ(fault(R"({"type":"hello"})"), "line: version: missing");
  EXPECT_EQ(fault(R"({"type":"hello","version":2})"),
            "line has contract version 2; this program knows up to 1");
  EXPECT_EQ(fault(R"({"type":"report","numbers":{"loss":NaN}})"), "line: not a JSON object");
  EXPECT_EQ(fault(R"({"type":"report","numbers":{"loss":"low"}})"),
            "line: numbers: must be an object of numbers");
  EXPECT_EQ(fault(R"({"type":"report","step":1.5})"), "line: step: must be a whole number");
  EXPECT_EQ(fault(R"({"type":"checkpointed","step":1})"), "line: path: missing");
  EXPECT_EQ(fault(R"({"type":"resized","workers":1})"), "line: pause_ms: missing");
  EXPECT_EQ(fault(R"({"type":"resized","workers":1,"pause_ms":-1})"),
            "line: pause_ms: must not be negative");
  EXPECT_EQ(DecodeTold(R"({"type":"resize","generation":1,"members":[1]})").error().message,
            "line: members: must be an array of objects");
}

}  // namespace
}  // namespace muster::contract

#include "net/ws_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::net {
namespace {

constexpr WsMask kMask = {0x37, 0xfa, 0x21, 0x3d};

std::string Masked(WsOp op, std::string_view payload) {
  std::string out;
  AppendFrame(out, op, payload, &kMask);
  return out;
}

// What one reader makes of the bytes, given in pieces of this size.
struct Read {
  std::vector<WsEvent> events{};
  int failure = 0;
};

Read ReadAll(std::string_view bytes, std::size_t piece, std::size_t most = 1 << 20) {
  WsReader reader(true, most);
  Read out;
  while (!bytes.empty() && reader.failure() == 0) {
    auto part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (auto event = reader.Next(part)) out.events.push_back(std::move(*event));
    EXPECT_TRUE(part.empty() || reader.failure() != 0);
  }
  out.failure = reader.failure();
  return out;
}

int FailureOf(std::string_view bytes) { return ReadAll(bytes, 1).failure; }

std::string Bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

TEST(WsFrame, IsThatOfTheStandardsExamples) {
  std::string out;
  AppendFrame(out, WsOp::kText, "Hello");
  EXPECT_EQ(out, "\x81\x05Hello");
  EXPECT_EQ(Masked(WsOp::kText, "Hello"),
            Bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58}));
  EXPECT_EQ(WsAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WsReader, ReadsMessagesOfEverySizeInPiecesOfEverySize) {
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 7, 125, 126, 127, 65535, 65536, 70001}) {
    std::string payload(size, '\0');
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 7 % 251);
    const auto bytes = Masked(WsOp::kBinary, payload) + Masked(WsOp::kPing, "p");
    for (const std::size_t piece : std::initializer_list<std::size_t>{1, 3, 4096, 1 << 20}) {
      const auto read = ReadAll(bytes, piece);
      ASSERT_EQ(read.failure, 0);
      ASSERT_EQ(read.events.size(), 2U);
      EXPECT_EQ(read.events[0].payload, payload);
      EXPECT_EQ(read.events[1].op, WsOp::kPing);
    }
  }
}

TEST(WsReader, JoinsFragmentsWithControlFramesBetweenThem) {
  auto first = Masked(WsOp::kText, "one ");
  first[0] = 0x01;
  auto middle = Masked(WsOp::kContinuation, "two ");
  middle[0] = 0x00;
  const auto bytes =
      first + Masked(WsOp::kPing, "?") + middle + Masked(WsOp::kContinuation, "three");
  const auto read = ReadAll(bytes, 2);
  ASSERT_EQ(read.events.size(), 2U);
  EXPECT_EQ(read.events[0].payload, "?");
  EXPECT_EQ(read.events[1].op, WsOp::kText);
  EXPECT_EQ(read.events[1].payload, "one two three");
}

TEST(WsReader, ReadsTheCodeAndReasonOfAClose) {
  std::string bytes;
  AppendClose(bytes, 4001, std::string(200, 'x'), &kMask);
  const auto read = ReadAll(bytes, 1);
  ASSERT_EQ(read.events.size(), 1U);
  EXPECT_EQ(read.events[0].code, 4001);
  EXPECT_EQ(read.events[0].payload, std::string(123, 'x'));
  EXPECT_EQ(ReadAll(Masked(WsOp::kClose, ""), 1).events.at(0).code, kWsNoCode);
}

TEST(WsFrame, CutsReasonsBetweenCharacters) {
  std::string bytes;
  AppendClose(bytes, kWsNormal, std::string(122, 'x') + "\xc3\xa4", &kMask);
  EXPECT_EQ(ReadAll(bytes, 1).events.at(0).payload, std::string(122, 'x'));
}

TEST(WsReader, RefusesWhatTheStandardForbids) {
  const auto with = [](std::string frame, std::size_t at, int value) {
    frame[at] = static_cast<char>(value);
    return frame;
  };
  const auto text = Masked(WsOp::kText, "a");
  std::string unmasked;
  AppendFrame(unmasked, WsOp::kText, "a");
  EXPECT_EQ(FailureOf(text), 0);
  for (const auto& bad : {
           unmasked,
           with(text, 0, 0xc1),                      // a reserved bit
           with(text, 0, 0x83),                      // an unknown kind of message
           with(text, 0, 0x8b),                      // and of control frame
           with(text, 0, 0x80),                      // a continuation of nothing
           with(text, 0, 0x01) + text,               // a message within a message
           with(Masked(WsOp::kPing, "a"), 0, 0x09),  // a fragment of a ping
           with(Masked(WsOp::kPing, std::string(126, 'a')), 0, 0x89),
           Bytes({0x82, 0xfe, 0, 5, 0, 0, 0, 0}),  // a length in too many bytes
           Bytes({0x82, 0xff, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0}),
           Bytes({0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0}),
           Masked(WsOp::kClose, "x"),                  // half a code
           Masked(WsOp::kClose, Bytes({0x03, 0xed})),  // 1005 is never sent
           Masked(WsOp::kClose, Bytes({0x00, 0x00})),
       }) {
    EXPECT_EQ(FailureOf(bad), kWsProtocolError) << bad;
  }
  EXPECT_EQ(FailureOf(Masked(WsOp::kText, "\xff")), kWsBadText);
  EXPECT_EQ(FailureOf(Masked(WsOp::kClose, "\x03\xe8\xff")), kWsBadText);
}

TEST(WsReader, RefusesMessagesThatAreTooLargeBeforeTheyArrive) {
  const auto head = Masked(WsOp::kBinary, std::string(1001, 'x')).substr(0, 8);
  EXPECT_EQ(ReadAll(head, 1, 1000).failure, kWsTooLarge);
  auto first = Masked(WsOp::kBinary, std::string(600, 'x'));
  first[0] = 0x02;
  const auto second = Masked(WsOp::kContinuation, std::string(600, 'x')).substr(0, 8);
  EXPECT_EQ(ReadAll(first + second, 64, 1000).failure, kWsTooLarge);
  EXPECT_EQ(
      ReadAll(Bytes({0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0}), 1).failure,
      kWsTooLarge);
}

TEST(IsUtf8, TellsTextFromBytes) {
  for (const char* good : {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc3", "\xe2\x82", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xc3z"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace muster::net

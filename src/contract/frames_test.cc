#include "contract/frames.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <vector>

namespace muster::contract {
namespace {

constexpr std::array kEvery = {FrameKind::kData, FrameKind::kErr,    FrameKind::kWindow,
                               FrameKind::kEnd,  FrameKind::kSignal, FrameKind::kExit,
                               FrameKind::kFault};

TEST(Frames, ArriveWholeHoweverTheyAreCut) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& payloads, std::size_t seed) {
    std::vector<Frame> sent;
    std::string wire;
    for (const auto& payload : payloads) {
      sent.push_back({kEvery.at(sent.size() % kEvery.size()), payload});
      wire += EncodeFrame(sent.back().kind, payload);
    }
    FrameReader reader;
    std::vector<Frame> got;
    for (std::size_t at = 0; at < wire.size();) {
      const auto size = std::min<std::size_t>(1 + (seed + at) % 7, wire.size() - at);
      reader.Add(std::string_view(wire).substr(at, size));
      at += size;
      for (auto next = reader.Next(); next.has_value() && next->has_value(); next = reader.Next()) {
        got.push_back(**next);
      }
    }
    RC_ASSERT(got == sent);
  }));
}

TEST(Frames, TheLargestFitsAndALargerOneIsRefusedByItsHead) {
  FrameReader reader;
  reader.Add(EncodeFrame(FrameKind::kErr, std::string(kLargestPayload, 'x')));
  const auto whole = reader.Next();
  ASSERT_TRUE(whole.has_value() && whole->has_value());
  EXPECT_EQ((*whole)->payload.size(), kLargestPayload);
  reader.Add(std::string_view("d\x00\x01\x00\x01", 5));
  EXPECT_EQ(reader.Next().error().message, "a frame of 65537 bytes is too large");
}

TEST(Frames, AnUnknownKindIsAnError) {
  FrameReader reader;
  reader.Add(std::string_view("\x07\0\0\0\0", 5));
  EXPECT_EQ(reader.Next().error().message, "7 is no kind of frame");
}

TEST(Frames, AreWhatTheManualSays) {
  EXPECT_EQ(EncodeFrame(FrameKind::kData, "ls\n"), std::string("d\0\0\0\3ls\n", 8));
  EXPECT_EQ(EncodeWindow({50, 300}), std::string("\0\x32\x01\x2c", 4));
  EXPECT_EQ(EncodeEnded({3, 0}), "{\"exit_code\":3,\"signal\":0}");
}

TEST(Frames, SizesAndEndsSurviveTheirCodecs) {
  for (const Window window : {Window{1, 1}, Window{24, 80}, Window{65'535, 65'535}}) {
    EXPECT_EQ(DecodeWindow(EncodeWindow(window)), window);
  }
  for (const Ended ended : {Ended{0, 0}, Ended{-1, 9}}) {
    EXPECT_EQ(DecodeEnded(EncodeEnded(ended)), ended);
  }
  for (const std::string_view bad : {std::string_view("", 0), std::string_view("\0\0\0\1", 4),
                                     std::string_view("\0\1\0\1\0", 5)}) {
    EXPECT_FALSE(DecodeWindow(bad).has_value());
  }
  EXPECT_EQ(DecodeEnded("{}").error().message, "exit: exit_code: missing");
}

}  // namespace
}  // namespace muster::contract

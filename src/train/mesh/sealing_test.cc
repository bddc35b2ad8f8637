#include "train/mesh/sealing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "train/mesh/handshake.h"
#include "train/mesh/test_gang.h"
#include "train/mesh/test_relay.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SealingTest, AnyChangedBitIsNoticedAndNoFrameCanBeRepeated) {
  const Hash key = NewNonce();
  const std::vector<std::byte> header(32, std::byte{7}), plain(1000, std::byte{42});
  Sealer seal(key);
  std::vector<std::byte> first(plain.size()), second(plain.size());
  const auto first_seal = seal.Seal(header, plain, first.data());
  const auto second_seal = seal.Seal(header, plain, second.data());
  EXPECT_NE(first, plain);
  EXPECT_NE(first, second);
  {
    Sealer open(key);
    auto changed = first;
    changed[500] ^= std::byte{1};
    EXPECT_FALSE(open.Open(header, changed, first_seal));
  }
  {
    Sealer open(key);
    auto changed_header = header;
    changed_header[0] ^= std::byte{1};
    auto bytes = first;
    EXPECT_FALSE(open.Open(changed_header, bytes, first_seal));
  }
  Sealer open(key);
  auto bytes = first;
  EXPECT_TRUE(open.Open(header, bytes, first_seal));
  EXPECT_EQ(bytes, plain);
  bytes = first;
  EXPECT_FALSE(open.Open(header, bytes, first_seal)) << "said again";
  Sealer later(key);
  later.Skip();
  EXPECT_TRUE(later.Open(header, second, second_seal));
  EXPECT_EQ(second, plain);
}

// Two members whose connection is encrypted and goes through a relay.
struct Tapped {
  Inbox here_inbox, there_inbox;
  std::unique_ptr<Mesh> here;
  std::unique_ptr<Relay> relay;
  std::unique_ptr<Mesh> there;  // the dialer, whose words are changed; the first to go
};

std::unique_ptr<Tapped> Tap(Relay::Change change) {
  auto options = TestOptions();
  options.share_memory = false;
  options.encrypt = true;
  options.wire = "tcp";
  auto out = std::make_unique<Tapped>();
  auto here = Mesh::Open(options, out->here_inbox.Events());
  auto there = Mesh::Open(options, out->there_inbox.Events());
  EXPECT_TRUE(here && there);
  out->here = std::move(*here);
  out->relay = std::make_unique<Relay>(out->here->self().address, std::move(change));
  out->there = std::move(*there);
  auto through = out->here->self();
  through.address = out->relay->address();
  const auto connected = out->there->Connect(through);
  EXPECT_TRUE(connected) << (connected ? "" : connected.error().message);
  return out;
}

// Both are told, and not because one of them was silent for long.
void ExpectTorn(Tapped& tapped) {
  using Lost = std::pair<MemberId, LostHow>;
  EXPECT_EQ(tapped.here_inbox.AwaitLost(), Lost(tapped.there->self().id, LostHow::kClosed));
  EXPECT_EQ(tapped.there_inbox.AwaitLost(), Lost(tapped.here->self().id, LostHow::kClosed));
}

constexpr std::size_t kTold = 100, kBulk = 70'000;

// Of a frame with so many bytes of payload: all that is checked before the payload is read, and
// some of the rest.
std::vector<std::size_t> Places(std::size_t payload) {
  std::vector<std::size_t> out;
  for (std::size_t at = 0; at < Relay::kHead; ++at) out.push_back(at);
  const std::size_t end = Relay::kHead + payload;
  for (const std::size_t at : {Relay::kHead, end - 1, end, end + kSealBytes - 1}) out.push_back(at);
  return out;
}

// Changes one byte of the first frame of its kind that is long enough.
Relay::Change Flip(FrameKind kind, std::size_t least, std::size_t at) {
  return [=, done = false](const FrameHeader& header, std::string& frame) mutable {
    if (done || header.kind != kind || header.length < least) return;
    done = true;
    frame[at] = static_cast<char>(frame[at] ^ 0x10);
  };
}

TEST(SealedLinkTest, AnyChangedByteOfAMessageEndsTheConnectionAndIsNotBelieved) {
  for (const std::size_t at : Places(kTold)) {
    SCOPED_TRACE(at);
    const auto tapped = Tap(Flip(FrameKind::kTold, kTold, at));
    tapped->there->Tell(tapped->here->self().id, "before");
    EXPECT_EQ(tapped->here_inbox.NextTold().second, "before");
    tapped->there->Tell(tapped->here->self().id, std::string(kTold, 'x'));
    tapped->there->Tell(tapped->here->self().id, "behind");
    ExpectTorn(*tapped);
    EXPECT_THAT(tapped->here_inbox.AllTold(), IsEmpty());
  }
}

// Also where it is read straight into the memory of who waits for it.
TEST(SealedLinkTest, AnyChangedByteOfBulkEndsTheWaitForIt) {
  for (const std::size_t at : Places(kBulk)) {
    SCOPED_TRACE(at);
    const auto tapped = Tap(Flip(FrameKind::kBulk, kBulk, at));
    const std::vector<MemberId> members{tapped->here->self().id, tapped->there->self().id};
    const auto here = tapped->here->Enter(1, members), there = tapped->there->Enter(1, members);
    ASSERT_TRUE(here && there);
    const std::vector<std::byte> bytes(kBulk, std::byte{42});
    std::vector<std::byte> into(kBulk);
    (*here)->Expect(1, 7, into);
    (*there)->Offer(0, 7, bytes);
    std::thread fetching([&] {
      const auto fetched = (*here)->Fetch(1, 7, into);
      ASSERT_FALSE(fetched);
      EXPECT_THAT(fetched.error().message, HasSubstr("was changed on the way"));
    });
    ExpectTorn(*tapped);
    (*here)->Abort("it hangs");  // nothing to do, where it does not
    fetching.join();
  }
}

TEST(SealedLinkTest, WhatIsSaidAgainOrLeftOutEndsTheConnection) {
  for (const bool again : {true, false}) {
    SCOPED_TRACE(again);
    const auto tapped = Tap([again](const FrameHeader& header, std::string& frame) {
      if (header.kind != FrameKind::kTold) return;
      frame = again ? std::string(frame).append(frame) : "";
    });
    for (const char* text : {"one", "two"}) tapped->there->Tell(tapped->here->self().id, text);
    ExpectTorn(*tapped);  // where all of it was left out: with the next beat
    const auto told = tapped->here_inbox.AllTold();
    if (again) {
      EXPECT_THAT(told, ElementsAre("one"));
    } else {
      EXPECT_THAT(told, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace muster::train

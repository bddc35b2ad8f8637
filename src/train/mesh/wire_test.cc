#include "train/mesh/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "train/mesh/socket.h"
#include "train/mesh/test_gang.h"
#include "train/mesh/wires.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

std::int64_t Soon() { return NowNs() + 20'000'000'000; }

std::vector<std::byte> Pattern(std::size_t size, std::size_t seed) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<std::byte>((i * 7 + i / 251 + seed * 31) % 256);
  }
  return out;
}

MeshOptions GlooOptions() {
  auto options = TestOptions();
  options.wire = "gloo";
  return options;
}

// One end: what its wire brings, and where what it says goes.
class End final : public WireOwner {
 public:
  std::function<void(const FrameHeader&, std::string)> say;
  std::map<Tag, std::vector<std::byte>> arrived;
  std::uint64_t most_bytes = kMostBulk;

  void SayOfWire(const FrameHeader& header, std::string payload) override {
    say(header, std::move(payload));
  }
  bool WireBegins(const FrameHeader& header) override {
    const std::lock_guard lock(mutex_);
    header_ = header;
    bytes_.clear();
    if (header.length == 0) Arrive();
    return header.length <= most_bytes;
  }
  bool WireBrings(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    if (bytes_.size() == header_.length) Arrive();
    return bytes_.size() <= header_.length;
  }
  void WireCuts() override {
    const std::lock_guard lock(mutex_);
    ++cuts_;
    changed_.notify_all();
  }
  void WireBroke() override {
    const std::lock_guard lock(mutex_);
    broke_ = true;
    changed_.notify_all();
  }
  std::vector<std::byte> Await(Tag tag) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20),
                                  [&] { return broke_ || arrived.contains(tag); }));
    return arrived[tag];
  }
  bool AwaitBroke() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return broke_; });
  }
  bool AwaitCut() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return cuts_ > 0; });
  }

 private:
  void Arrive() {
    arrived[header_.tag] = bytes_;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  FrameHeader header_;
  std::vector<std::byte> bytes_;
  int cuts_ = 0;
  bool broke_ = false;
};

WireTerms Terms(bool first, bool encrypt) {
  WireTerms out{WireKind::kGloo, first, encrypt, {}, {}};
  out.mine.fill(static_cast<std::byte>(first ? 1 : 2));
  out.theirs.fill(static_cast<std::byte>(first ? 2 : 1));
  return out;
}

// Two ends of one wire in one process, each with a device of its own.
class WireTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasGloo()) GTEST_SKIP() << "built without Gloo";
    for (auto& each : wires_) {
      auto opened = Wires::Open(GlooOptions());
      ASSERT_TRUE(opened) << opened.error().message;
      each = std::move(*opened);
    }
  }
  void TearDown() override {
    for (auto& wire : wire_) {
      if (wire) wire->Detach();
    }
    wires_ = {};
  }
  void Make(const WireTerms& one, const WireTerms& other) {
    wire_[0] = wires_[0]->Make(one, throttle_);
    wire_[1] = wires_[1]->Make(other, throttle_);
    for (std::size_t i = 0; i < 2; ++i) {
      ends_[i].say = [to = wire_[1 - i]](const FrameHeader& header, std::string payload) {
        EXPECT_TRUE(to->Hear(header, std::move(payload)));
      };
    }
    for (std::size_t i = 0; i < 2; ++i) wires_[i]->Start(wire_[i], ends_[i]);
  }

  Throttle throttle_{0}, slow_{40'000'000};
  std::array<End, 2> ends_;
  std::array<std::unique_ptr<Wires>, 2> wires_;
  std::array<std::shared_ptr<Wire>, 2> wire_;
};

TEST_F(WireTest, BytesOfAnySizeArriveInBothDirectionsAtOnce) {
  const std::vector<std::size_t> sizes{
      0, 1, kWireChunk - 1, kWireChunk, kWireChunk + 1, 24U << 20U, 17, 0, 3'000'001};
  for (const bool encrypt : {false, true}) {
    ends_[0].arrived.clear();
    ends_[1].arrived.clear();
    Make(Terms(true, encrypt), Terms(false, encrypt));
    std::array<std::vector<std::vector<std::byte>>, 2> sent;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto ready = wire_[i]->AwaitReady(Soon());
      ASSERT_TRUE(ready) << ready.error().message;
      for (std::size_t tag = 0; tag < sizes.size(); ++tag) {
        sent[i].push_back(Pattern(sizes[tag], tag + 100 * i));
      }
    }
    for (std::size_t tag = 0; tag < sizes.size(); ++tag) {
      for (std::size_t i = 0; i < 2; ++i) wire_[i]->Offer(1, tag, sent[i][tag]);
    }
    for (std::size_t tag = 0; tag < sizes.size(); ++tag) {
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(ends_[1 - i].Await(tag) == sent[i][tag]) << sizes[tag];
      }
    }
    for (auto& wire : wire_) wire->Detach();
  }
}

TEST_F(WireTest, WhatIsWithdrawnIsNotReadAnyMoreAndTheNextComesWhole) {
  wire_[0] = wires_[0]->Make(Terms(true, false), slow_);
  wire_[1] = wires_[1]->Make(Terms(false, false), throttle_);
  ends_[0].say = [to = wire_[1]](const FrameHeader& header, std::string payload) {
    to->Hear(header, std::move(payload));
  };
  ends_[1].say = [to = wire_[0]](const FrameHeader& header, std::string payload) {
    to->Hear(header, std::move(payload));
  };
  for (std::size_t i = 0; i < 2; ++i) wires_[i]->Start(wire_[i], ends_[i]);
  const auto small = Pattern(1000, 3), next = Pattern(700'000, 4);
  {
    const auto large = std::make_unique<std::vector<std::byte>>(Pattern(64U << 20U, 5));
    wire_[0]->Offer(1, 1, small);
    wire_[0]->Offer(1, 2, *large);  // goes for more than a second
    wire_[0]->Offer(1, 3, *large);
    EXPECT_EQ(ends_[1].Await(1), small);
    wire_[0]->Withdraw(1);
  }
  wire_[0]->Offer(2, 4, next);
  EXPECT_EQ(ends_[1].Await(4), next);
  EXPECT_FALSE(ends_[1].arrived.contains(2));
  EXPECT_FALSE(ends_[1].arrived.contains(3));
}

TEST_F(WireTest, TheEndOfTheOtherSideIsSeenAndAClosedOneSaysNothing) {
  Make(Terms(true, false), Terms(false, false));
  ASSERT_TRUE(wire_[0]->AwaitReady(Soon()));
  ASSERT_TRUE(wire_[1]->AwaitReady(Soon()));
  wire_[1]->Close();
  const auto bytes = Pattern(8U << 20U, 1);
  wire_[0]->Offer(1, 1, bytes);
  EXPECT_TRUE(ends_[0].AwaitBroke());
  EXPECT_THAT(wire_[0]->fault(), HasSubstr("the wire is broken"));
  EXPECT_EQ(wire_[1]->fault(), "");
}

TEST_F(WireTest, BulkForWhichThereIsNoPlaceBreaksIt) {
  ends_[1].most_bytes = 1000;
  Make(Terms(true, true), Terms(false, true));
  const auto small = Pattern(1000, 1), large = Pattern(1001, 2);
  wire_[0]->Offer(1, 1, small);
  wire_[0]->Offer(1, 2, large);
  EXPECT_TRUE(ends_[1].AwaitBroke());
  EXPECT_THAT(wire_[1]->fault(), HasSubstr("does not keep to the protocol"));
  EXPECT_EQ(ends_[1].Await(1), small);
  EXPECT_FALSE(ends_[1].arrived.contains(2));
}

TEST_F(WireTest, AnotherKeyIsRefused) {
  auto other = Terms(false, false);
  other.mine.fill(std::byte{9});
  Make(Terms(true, false), other);
  const auto ready = wire_[0]->AwaitReady(Soon());
  ASSERT_FALSE(ready);
  EXPECT_THAT(ready.error().message, HasSubstr("does not know the secret of the job"));
  EXPECT_TRUE(ends_[0].AwaitBroke());
}

// Whoever finds the port before the other member does gets no further than the proof.
TEST_F(WireTest, AStrangerThatConnectsFirstIsRefused) {
  wire_[0] = wires_[0]->Make(Terms(true, false), throttle_);
  std::mutex mutex;
  std::condition_variable changed;
  std::string address;
  ends_[0].say = [&](const FrameHeader& header, std::string payload) {
    const std::lock_guard lock(mutex);
    if (header.kind == FrameKind::kWireAddress) address = std::move(payload);
    changed.notify_all();
  };
  wires_[0]->Start(wire_[0], ends_[0]);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return !address.empty(); }));
  }
  // Gloo's address begins with one of a socket; the end with the lower port waits to be dialed.
  sockaddr_in at{};
  std::memcpy(&at, address.data(), sizeof at);
  ASSERT_EQ(at.sin_family, AF_INET);
  const auto fd = DialTcp("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), Soon());
  ASSERT_TRUE(fd);
  std::array<std::size_t, 6> head{sizeof head + kHashBytes, 0, kWireSlots, 0, kHashBytes, 0};
  std::string said(reinterpret_cast<const char*>(head.data()), sizeof head);
  said.append(kHashBytes, 'x');
  ASSERT_EQ(write(fd->get(), said.data(), said.size()), static_cast<ssize_t>(said.size()));
  std::string other = address;
  at.sin_port = 0xFFFF;
  std::memcpy(other.data(), &at, sizeof at);
  EXPECT_TRUE(wire_[0]->Hear({FrameKind::kWireAddress, 0, 0, 0, other.size()}, other));
  EXPECT_TRUE(wire_[0]->Hear({FrameKind::kWireConnected, 0, 0, 0, 0}, ""));
  EXPECT_TRUE(wire_[0]->Hear({FrameKind::kWireChunk, 0, kHashBytes, 0, 0}, ""));
  const auto ready = wire_[0]->AwaitReady(Soon());
  ASSERT_FALSE(ready);
  EXPECT_THAT(ready.error().message, HasSubstr("does not know the secret of the job"));
}

TEST_F(WireTest, AnEndThatNeverComesIsGivenUpAtOnceWhenClosedAndElseAtTheTimeOut) {
  auto options = GlooOptions();
  options.timeout_ms = 300;
  const auto hasty = Wires::Open(options);
  ASSERT_TRUE(hasty);
  ends_[0].say = ends_[1].say = [](const FrameHeader&, const std::string&) {};
  wire_[0] = (*hasty)->Make(Terms(true, false), throttle_);
  (*hasty)->Start(wire_[0], ends_[0]);
  EXPECT_TRUE(ends_[0].AwaitBroke());
  EXPECT_THAT(wire_[0]->AwaitReady(Soon()).error().message, HasSubstr("too slow"));
  wire_[1] = wires_[1]->Make(Terms(false, false), throttle_);
  wires_[1]->Start(wire_[1], ends_[1]);
  wire_[1]->Close();
  EXPECT_FALSE(wire_[1]->AwaitReady(Soon()));
}

TEST(WiresTest, AWireIsReadFromItsText) {
  EXPECT_EQ(ParseWire("tcp")->kind, WireKind::kTcp);
  EXPECT_EQ(ParseWire("gloo")->kind, WireKind::kGloo);
  EXPECT_TRUE(ParseWire("auto")->automatic);
  EXPECT_EQ(ParseWire("auto")->kind, WireKind::kIbverbs);
  const auto device = ParseWire("ibverbs:mlx5_0/2/3");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->device, "mlx5_0");
  EXPECT_EQ(device->port, 2);
  EXPECT_EQ(device->gid_index, 3);
  EXPECT_EQ(ParseWire("ibverbs:mlx5_0")->port, 1);
  for (const char* wrong :
       {"", "udp", "gloo:x", "tcp:x", "auto:x", "ibverbs:", "ibverbs:a/b", "ibverbs:a/1/"}) {
    EXPECT_FALSE(ParseWire(wrong)) << wrong;
  }
}

TEST(WiresTest, WithoutADeviceForRdmaIbverbsIsRefusedAndAutoIsTcp) {
  const auto nowhere = std::filesystem::temp_directory_path() / "muster-no-such-folder";
  auto options = TestOptions();
  options.wire = "ibverbs";
  const auto refused = Wires::Open(options, nowhere);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no device for RDMA"));
  EXPECT_THAT(refused.error().hint, HasSubstr("--wire tcp"));
  options.wire = "auto";
  const auto automatic = Wires::Open(options, nowhere);
  ASSERT_TRUE(automatic);
  EXPECT_EQ((*automatic)->kinds(), static_cast<WireKinds>(WireKind::kTcp));
}

// The kernel lists one, and Gloo finds none that it could open.
TEST(WiresTest, ADeviceThatCannotBeOpenedIsAnErrorOfIbverbsAndNotOfAuto) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("muster-wires-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "none_0");
  auto options = TestOptions();
  options.wire = "ibverbs:none_0/1/0";
  EXPECT_FALSE(Wires::Open(options, folder));
  options.wire = "auto";
  const auto automatic = Wires::Open(options, folder);
  EXPECT_TRUE(automatic);
  EXPECT_EQ((*automatic)->kinds(), static_cast<WireKinds>(WireKind::kTcp));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster::train

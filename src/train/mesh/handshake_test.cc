#include "train/mesh/handshake.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/secret.h"

namespace muster::train {
namespace {

constexpr std::int64_t kPatienceNs = 60'000'000'000;

// A member that dials, and the other end of its line, which this test has.
class HandshakeTest : public testing::Test {
 protected:
  HandshakeTest() {
    dialer_.id = 1;
    dialer_.job = listener_.job = "test";
    dialer_.secret = listener_.secret = "a secret of the test";
    listener_.id = 2;
    Endpoint to;
    to.id = listener_.id;
    to.segment = "muster-" + NewSecretHex(12);
    auto listening = ListenUnix(to.segment);
    EXPECT_TRUE(listening);
    if (!listening) return;
    dialing_ = std::thread([this, to] {
      const auto dialed = DialPeer(dialer_, to, true, NowNs() + kPatienceNs);
      ASSERT_FALSE(dialed);
      refused_ = dialed.error().code;
    });
    EXPECT_TRUE(AwaitSocket(listening->get(), POLLIN, NowNs() + kPatienceNs));
    line_ = AcceptOn(listening->get()).fd;
    EXPECT_TRUE(AwaitSocket(line_.get(), POLLIN, NowNs() + kPatienceNs));
    hello_.resize(512);
    std::vector<Fd> none;
    hello_.resize(static_cast<std::size_t>(ReceiveWith(line_.get(), hello_, none)));
  }
  ~HandshakeTest() override { Hang(); }

  ErrorCode Hang() {
    line_ = Fd();
    if (dialing_.joinable()) dialing_.join();
    return refused_;
  }

  // A byte of a message that is not whole by then, and a descriptor with it.
  void SendByte(int line, std::size_t at) const {
    const std::array<int, 1> with{STDERR_FILENO};
    ASSERT_TRUE(SendWith(line, std::span(hello_).subspan(at, 1), with));
  }

  Identity dialer_, listener_;
  Fd line_;
  std::vector<std::byte> hello_;
  std::thread dialing_;
  ErrorCode refused_ = ErrorCode::kInternal;
};

TEST_F(HandshakeTest, AStrangerWhoHandsOverMoreDescriptorsThanAProofHasIsNotHeardOut) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const Fd stranger(ends[0]);
  Greeter greeter(listener_, Fd(ends[1]), true, NowNs() + kPatienceNs);
  for (std::size_t at = 0; at < 3; ++at) SendByte(stranger.get(), at);
  ASSERT_TRUE(SendWith(stranger.get(), std::span(hello_).subspan(3), {}));
  EXPECT_EQ(greeter.Read(), Greeter::Step::kMore) << "those before the hello are not kept";
  for (std::size_t at = 0; at < 2; ++at) {
    SendByte(stranger.get(), at);
    EXPECT_EQ(greeter.Read(), Greeter::Step::kMore) << at;
  }
  SendByte(stranger.get(), 2);
  EXPECT_EQ(greeter.Read(), Greeter::Step::kOver);
}

TEST_F(HandshakeTest, WhoHandsADialerMoreDescriptorsThanBelongToTheAnswerIsNoWorker) {
  for (std::size_t at = 0; at < 2; ++at) SendByte(line_.get(), at);
  EXPECT_EQ(Hang(), ErrorCode::kInvalid) << "not for the end of the line";
}

}  // namespace
}  // namespace muster::train

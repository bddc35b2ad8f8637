#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "net/ws_testing.h"

namespace muster::net {
namespace {

// A program behind a socket: accepts one connection, lets `serve` talk, closes it.
class Target {
 public:
  Target(Fd listener, std::function<void(RawClient&)> serve)
      : thread_([listener = std::move(listener), serve = std::move(serve)] {
          int socket = -1;
          while ((socket = accept(listener.get(), nullptr, nullptr)) < 0) {
            std::this_thread::yield();
          }
          RawClient peer{Fd(socket)};
          serve(peer);
        }) {}
  ~Target() { thread_.join(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

 private:
  std::thread thread_;
};

class Relay : public testing::Test {
 protected:
  std::string Behind() const { return folder_.Path("target"); }

  std::unique_ptr<Target> AtUnix(std::function<void(RawClient&)> serve) {
    auto listener = ListenUnix(Behind(), 0600);
    file_ = std::move(listener->file);
    return std::make_unique<Target>(std::move(listener->socket), std::move(serve));
  }

  void Start(RelayTarget target) {
    target.on_closed = [this] { closed_.set_value(); };
    server_ = StartServer(At(folder_.Path()), [this, target](Request, auto exchange) {
      EXPECT_FALSE(server_->Relay(*exchange, target).expired());
    });
  }
  std::unique_ptr<WsClient> Client() { return Connected({.unix_path = folder_.Path()}); }
  void AwaitClosed() { closed_.get_future().wait(); }

  SocketFolder folder_;
  SocketFile file_;
  std::promise<void> closed_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Relay, SendsFirstBytesThenCarriesBothWaysAndEndsWithTheTarget) {
  const auto target = AtUnix([](RawClient& peer) {
    EXPECT_EQ(peer.ReadUntil("ping"), "first\nping");
    peer.Send("pong");
  });
  Start({.unix_path = Behind(), .first_bytes = "first\n"});
  auto client = Client();
  client->Send("ping");
  EXPECT_EQ(Next(*client).bytes, "pong");
  const auto end = Next(*client);
  EXPECT_TRUE(end.closed);
  EXPECT_EQ(end.code, kWsNormal);
  AwaitClosed();
}

TEST_F(Relay, ReachesPortsOfThisMachine) {
  auto listener = ListenLoopback(0);
  const auto port = PortOf(*listener);
  const Target target(std::move(*listener), [](RawClient& peer) { peer.Send("hello"); });
  Start({.loopback_port = port});
  auto client = Client();
  EXPECT_EQ(Next(*client).bytes, "hello");
  EXPECT_TRUE(Next(*client).closed);
}

TEST_F(Relay, AnEmptyMessageEndsTheTargetsInputAndItsAnswerStillComes) {
  const auto target = AtUnix([](RawClient& peer) {
    const auto all = peer.ReadAll();
    peer.Send("got " + all);
  });
  Start({.unix_path = Behind()});
  auto client = Client();
  client->Send("all of it");
  client->Send("");
  EXPECT_EQ(Next(*client).bytes, "got all of it");
  EXPECT_EQ(Next(*client).code, kWsNormal);
}

TEST_F(Relay, WhatTheClientSentBeforeItLeftReachesTheTarget) {
  std::promise<std::size_t> got;
  const auto target = AtUnix([&](RawClient& peer) {
    peer.Send("ready");
    got.set_value(peer.ReadAll().size());
  });
  Start({.unix_path = Behind()});
  auto client = Client();
  EXPECT_EQ(Next(*client).bytes, "ready");
  for (int i = 0; i < 16; ++i) client->Send(std::string(64 << 10, 'x'));
  client->Close(kWsNormal, "");
  while (!Next(*client).closed) {
  }
  EXPECT_EQ(got.get_future().get(), std::size_t{1} << 20);
  AwaitClosed();
}

TEST_F(Relay, SaysWhyATargetCannotBeReached) {
  Start({.unix_path = Behind()});
  auto client = Client();
  const auto end = Next(*client);
  EXPECT_TRUE(end.closed);
  EXPECT_EQ(end.code, kWsInternal);
  EXPECT_NE(end.bytes.find("No such file"), std::string::npos) << end.bytes;
  AwaitClosed();
}

TEST_F(Relay, SaysWhyAPortCannotBeReached) {
  std::uint16_t port = 0;
  {
    const auto listener = ListenLoopback(0);
    port = PortOf(*listener);
  }
  Start({.loopback_port = port});
  auto client = Client();
  const auto end = Next(*client);
  EXPECT_EQ(end.code, kWsInternal);
  EXPECT_NE(end.bytes.find("refused"), std::string::npos) << end.bytes;
}

TEST_F(Relay, IsNoneForARequestThatDidNotAsk) {
  server_ = StartServer(At(folder_.Path()), [this](Request, auto exchange) {
    EXPECT_TRUE(server_->Relay(*exchange, {.unix_path = "/nowhere"}).expired());
    exchange->Reply({.status = 426});
  });
  EXPECT_EQ(HttpClient({.unix_path = folder_.Path()}).Send({}, kPatienceMs)->status, 426);
}

TEST_F(Relay, HoldsAFastTargetBackForASlowReader) {
  std::atomic<std::size_t> given = 0;
  constexpr std::size_t kAll = std::size_t{64} << 20;
  const auto target = AtUnix([&](RawClient& peer) {
    const std::string block(64 << 10, 't');
    while (given < kAll && peer.Send(block)) given += block.size();
  });
  Start({.unix_path = Behind()});
  auto client = Client();
  // Nobody reads: what the target could give stays the same once all buffers on the way are full.
  std::size_t before = 0;
  do {
    before = given;
    std::promise<void> turn;
    server_->After(50, [&] { turn.set_value(); });
    turn.get_future().wait();
  } while (given != before);
  EXPECT_LT(given, std::size_t{4} << 20);
  std::size_t got = 0;
  for (;;) {
    const auto next = Next(*client);
    if (next.closed) break;
    got += next.bytes.size();
  }
  EXPECT_EQ(got, kAll);
}

TEST_F(Relay, HoldsAFastClientBackForASlowTarget) {
  std::promise<void> begin;
  std::promise<std::size_t> got;
  const auto target = AtUnix([&](RawClient& peer) {
    begin.get_future().wait();
    got.set_value(peer.ReadAll().size());
  });
  Start({.unix_path = Behind()});
  auto client = Client();
  constexpr std::size_t kAll = std::size_t{64} << 20;
  const std::string block(64 << 10, 'c');
  std::size_t sent = 0;
  while (client->Queued() < (1 << 20)) {
    ASSERT_TRUE(client->Send(block));
    sent += block.size();
  }
  EXPECT_LT(sent, std::size_t{8} << 20);
  begin.set_value();
  while (sent < kAll) {
    if (client->Queued() > (1 << 20)) {
      ASSERT_TRUE(client->Wait(kPatienceMs));
      ASSERT_TRUE(client->Receive().has_value());
    } else {
      ASSERT_TRUE(client->Send(block));
      sent += block.size();
    }
  }
  client->Send("");
  EXPECT_EQ(Next(*client).code, kWsNormal);
  EXPECT_EQ(got.get_future().get(), kAll);
}

TEST_F(Relay, EchoOfMuchMoreThanAllBuffersDoesNotLock) {
  const auto target = AtUnix([](RawClient& peer) {
    for (;;) {
      const auto some = peer.ReadSome();
      if (some.empty() || !peer.Send(some)) return;
    }
  });
  Start({.unix_path = Behind()});
  auto client = Client();
  constexpr std::size_t kAll = std::size_t{16} << 20;
  const std::string block(64 << 10, 'e');
  std::size_t sent = 0;
  std::size_t got = 0;
  while (got < kAll) {
    if (sent < kAll && client->Queued() < block.size()) {
      client->Send(block);
      sent += block.size();
    }
    const auto next = client->Receive();
    ASSERT_TRUE(next.has_value());
    if (*next) {
      ASSERT_FALSE((*next)->closed);
      got += (*next)->bytes.size();
    } else if (sent == kAll || client->Queued() >= block.size()) {
      ASSERT_TRUE(client->Wait(kPatienceMs));
    }
  }
  EXPECT_EQ(got, kAll);
  client->Send("");
  EXPECT_EQ(Next(*client).code, kWsNormal);
}

}  // namespace
}  // namespace muster::net

#include "train/members/tcp_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <set>
#include <thread>

#include "base/hex.h"
#include "base/secret.h"
#include "train/members/store_server.h"
#include "train/mesh/address.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSecret = "the secret of the job";
constexpr std::int64_t kLongMs = 20'000;  // for what succeeds

std::int64_t Soon() { return NowNs() + kLongMs * 1'000'000; }

class TcpStoreTest : public ::testing::Test {
 protected:
  TcpStoreTest()
      : folder_(std::filesystem::temp_directory_path() / ("store-" + NewSecretHex(6))),
        host_(LoopbackOfNobody()) {
    Serve();
  }
  ~TcpStoreTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Serve(std::int64_t timeout_ms = kLongMs) {
    server_.reset();
    auto server = StoreServer::Open({folder_, host_, kSecret, timeout_ms});
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  // Tries for long, also where its time-out is short.
  std::unique_ptr<TcpStore> Client(std::int64_t timeout_ms = kLongMs) const {
    auto store = TcpStore::Open({server_->address(), kSecret, timeout_ms}, kLongMs, stays_);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }
  // Why nothing could be opened there.
  static Error Why(const std::string& address, const std::string& secret = kSecret,
                   std::int64_t timeout_ms = kLongMs) {
    const auto store = TcpStore::Open({address, secret, timeout_ms}, 0, stays_);
    EXPECT_FALSE(store);
    return store ? Error{} : store.error();
  }

  std::string folder_;
  std::string host_;
  std::unique_ptr<StoreServer> server_;
  static inline const std::atomic<bool> stays_{false};

 private:
  // An address of this machine on which nobody else takes a port while the server is away.
  static std::string LoopbackOfNobody() {
    const auto drawn = FromHex(NewSecretHex(3));
    const auto part = [&](std::size_t i) {
      return 1 + static_cast<unsigned char>((*drawn)[i]) % 254;
    };
    return fmt::format("127.{}.{}.{}", part(0), part(1), part(2));
  }
};

TEST_F(TcpStoreTest, WhoIsToldToLeaveDoesNotWaitForAStoreThatIsAway) {
  const std::string address = server_->address();
  server_.reset();
  const std::atomic<bool> leaves{true};
  const auto store = TcpStore::Open({address, kSecret, 50}, std::int64_t{24} * 3'600'000, leaves);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kUnavailable);
}

TEST_F(TcpStoreTest, WhatOneClaimsStandsForAll) {
  const auto one = Client();
  const auto two = Client();
  EXPECT_EQ(one->Read("view-1")->has_value(), false);
  EXPECT_EQ(*one->Claim("view-1", "of one"), "of one");
  EXPECT_EQ(*two->Claim("view-1", "of two"), "of one");
  EXPECT_EQ(**two->Read("view-1"), "of one");
  EXPECT_EQ(*one->Claim("view-1", "of one"), "of one");  // asked again after an answer was lost
}

TEST_F(TcpStoreTest, TheLastOneToWriteWins) {
  const auto one = Client();
  const auto two = Client();
  ASSERT_TRUE(one->Write("lease", "1"));
  ASSERT_TRUE(two->Write("lease", ""));
  EXPECT_EQ(**one->Read("lease"), "");
}

TEST_F(TcpStoreTest, LargeValuesComeBackWholeAndLargerOnesAreRefused) {
  const auto store = Client();
  std::string value(kMostValueBytes, 'x');
  value.front() = '\0';
  EXPECT_EQ(*store->Claim("large", value), value);
  EXPECT_TRUE(**store->Read("large") == value);
  value += 'x';
  EXPECT_THAT(store->Claim("larger", value).error().message, HasSubstr("too large"));
  EXPECT_EQ(store->Read("larger")->has_value(), false);
}

TEST_F(TcpStoreTest, KeysDoNotLeadOutOfTheFolder) {
  const auto store = Client();
  for (const std::string key : {"", ".", "..", "../x", "a/b", ".address", "A", "a\n"}) {
    EXPECT_FALSE(store->Claim(key, "x")) << key;
  }
  EXPECT_FALSE(store->Read(std::string(kMostKeyBytes + 1, 'a')));
  // Nor those of a client that does not look at them.
  for (const std::string bytes : {"\x03\x02..", "\x01\x04../x",
                                  "\x04\x01"
                                  "a",
                                  "\x03\x05"
                                  "a",
                                  "\x03"}) {
    EXPECT_FALSE(DecodeQuestion(bytes));
  }
}

TEST_F(TcpStoreTest, OneOfManyAtOnceIsFirst) {
  const auto shared = Client();
  std::vector<std::string> seen(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto own = Client();
      seen[i] = *(i % 2 == 0 ? *shared : *own).Claim("view-1", std::to_string(i));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 1U);
}

TEST_F(TcpStoreTest, AServerThatIsStartedAgainGoesOnOnItsPort) {
  const auto store = Client();
  const auto address = server_->address();
  EXPECT_EQ(*store->Claim("view-1", "first"), "first");
  Serve();
  EXPECT_EQ(server_->address(), address);
  EXPECT_EQ(*store->Claim("view-1", "second"), "first");
  // Also when it is away as the question is asked.
  server_.reset();
  std::thread later([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    Serve();
  });
  EXPECT_EQ(**store->Read("view-1"), "first");
  later.join();
}

TEST_F(TcpStoreTest, AStoreThatIsAwayFailsTheCallInTime) {
  const auto store = Client(500);
  server_.reset();
  EXPECT_EQ(store->Read("view-1").error().code, ErrorCode::kUnavailable);
  // One that is frozen: connections are taken by the kernel, nobody answers.
  const auto frozen = ListenTcp("127.0.0.1");
  const auto error = Why(frozen->address, kSecret, 200);
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_THAT(error.message, HasSubstr("the store at"));
}

TEST_F(TcpStoreTest, WhoCannotBeServedIsToldWhy) {
  EXPECT_THAT(Why(server_->address(), "another secret").message, HasSubstr("has another secret"));
  EXPECT_THAT(Why("127.0.0.1:1").message, HasSubstr("cannot connect"));
  EXPECT_EQ(Why("127.0.0.1").code, ErrorCode::kInvalid);
  EXPECT_EQ(Why("127.0.0.1:port").code, ErrorCode::kInvalid);
  EXPECT_EQ(Why("no-such-host.invalid:1").code, ErrorCode::kUnavailable);
  const auto nameless = Why(":1");
  EXPECT_EQ(nameless.code, ErrorCode::kInvalid) << nameless.message;
  EXPECT_FALSE(StoreServer::Open({folder_, "127.0.0.1", "", 100}));
  EXPECT_FALSE(StoreServer::Open({folder_, "192.0.2.1", kSecret, 100}));
}

// On either side.
TEST_F(TcpStoreTest, AnotherVersionIsRefusedWithAReason) {
  constexpr std::uint16_t kNewer = kMeshVersion + 1;
  auto newer = StoreIdentity(kStoreClientId, kSecret);
  newer.version = kNewer;
  Endpoint server;
  server.id = kStoreId;
  server.address = server_->address();
  const auto dialed = DialPeer(newer, server, false, Soon());
  ASSERT_FALSE(dialed);
  EXPECT_EQ(dialed.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(
      dialed.error().message,
      HasSubstr(fmt::format("speaks version {} of the mesh, this one {}", kMeshVersion, kNewer)));
  auto other = ListenTcp("127.0.0.1");
  const auto identity = [] {
    auto out = StoreIdentity(kStoreId, kSecret);
    out.version = kNewer;
    return out;
  }();
  std::thread answering([&] {
    EXPECT_TRUE(AwaitSocket(other->fd.get(), POLLIN, Soon()));
    Greeter greeter(identity, AcceptOn(other->fd.get()).fd, false, Soon());
    auto step = Greeter::Step::kMore;
    while (step == Greeter::Step::kMore && AwaitSocket(greeter.fd(), POLLIN, Soon())) {
      step = greeter.Read();
    }
    EXPECT_EQ(step, Greeter::Step::kOver);
  });
  const auto error = Why(other->address);
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("the store at " + other->address));
  EXPECT_THAT(error.message, HasSubstr(fmt::format("speaks version {} of the mesh, this one {}",
                                                   kNewer, kMeshVersion)));
  EXPECT_THAT(error.hint, HasSubstr("one version of Muster"));
  answering.join();
}

TEST_F(TcpStoreTest, SomethingElseThatAnswersIsNoStore) {
  auto other = ListenTcp("127.0.0.1");
  std::thread answering([&] {
    EXPECT_TRUE(AwaitSocket(other->fd.get(), POLLIN, Soon()));
    const auto from = AcceptOn(other->fd.get());
    const std::string text(100, 'x');
    EXPECT_TRUE(SendWith(from.fd.get(), std::as_bytes(std::span(text)), {}));
    EXPECT_TRUE(AwaitSocket(from.fd.get(), POLLIN, Soon()));
  });
  EXPECT_THAT(Why(other->address).message, HasSubstr("is no store"));
  answering.join();
}

TEST_F(TcpStoreTest, StrangersDoNotKeepFriendsOut) {
  Serve(1000);
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'),
        "mustertm" + std::string(1000, '\0'), "mustertm\x01" + std::string(1000, '\xff')}) {
    const auto fd = DialTcp(server_->address(), Soon());
    ASSERT_TRUE(fd);
    ::send(fd->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(AwaitSocket(fd->get(), POLLIN, Soon()));  // the end
  }
  std::vector<Fd> dawdlers;
  for (int i = 0; i < 200; ++i) {
    auto fd = DialTcp(server_->address(), Soon());
    ASSERT_TRUE(fd);
    ::send(fd->get(), "must", 4, MSG_NOSIGNAL);
    dawdlers.push_back(std::move(*fd));
  }
  EXPECT_EQ(*Client()->Claim("view-1", "friend"), "friend");
  for (const auto& fd : dawdlers) EXPECT_TRUE(AwaitSocket(fd.get(), POLLIN, Soon()));
}

// Whoever changes bytes on the way ends the connection; the question is asked again on another.
TEST_F(TcpStoreTest, WhatIsChangedOnTheWayIsNotBelieved) {
  auto relay = ListenTcp("127.0.0.1");
  std::thread relaying([&] {
    for (int number = 0; number < 2; ++number) {
      EXPECT_TRUE(AwaitSocket(relay->fd.get(), POLLIN, Soon()));
      const auto from = AcceptOn(relay->fd.get());
      const auto to = DialTcp(server_->address(), Soon());
      std::size_t forth = 0;
      while (true) {
        std::array<pollfd, 2> both{{{from.fd.get(), POLLIN, 0}, {to->get(), POLLIN, 0}}};
        ::poll(both.data(), both.size(), -1);
        const bool asks = both[0].revents != 0;
        std::array<char, 4096> piece;
        const auto got = ::recv(both[asks ? 0 : 1].fd, piece.data(), piece.size(), 0);
        if (got <= 0) break;
        if (asks && ++forth == 3 && number == 0) piece[static_cast<std::size_t>(got) - 1] ^= 1;
        ::send(both[asks ? 1 : 0].fd, piece.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
      }
    }
  });
  {
    auto store = TcpStore::Open({relay->address, kSecret, kLongMs}, 0, stays_);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(*(*store)->Claim("view-1", "true"), "true");
    EXPECT_EQ((*store)->here(), "127.0.0.1");
  }
  relaying.join();
  EXPECT_EQ(**Client()->Read("view-1"), "true");
}

// Someone on the way records what a client says, its question too; said again, it is not heard.
TEST_F(TcpStoreTest, WhatIsSaidAgainIsNotBelieved) {
  auto relay = ListenTcp("127.0.0.1");
  std::string recorded;
  std::thread relaying([&] {
    EXPECT_TRUE(AwaitSocket(relay->fd.get(), POLLIN, Soon()));
    const auto from = AcceptOn(relay->fd.get());
    const auto to = DialTcp(server_->address(), Soon());
    while (true) {
      std::array<pollfd, 2> both{{{from.fd.get(), POLLIN, 0}, {to->get(), POLLIN, 0}}};
      ::poll(both.data(), both.size(), -1);
      const bool asks = both[0].revents != 0;
      std::array<char, 4096> piece;
      const auto got = ::recv(both[asks ? 0 : 1].fd, piece.data(), piece.size(), 0);
      if (got <= 0) break;
      const auto bytes = static_cast<std::size_t>(got);
      if (asks) recorded.append(piece.data(), bytes);
      ::send(both[asks ? 1 : 0].fd, piece.data(), bytes, MSG_NOSIGNAL);
    }
  });
  {
    auto store = TcpStore::Open({relay->address, kSecret, kLongMs}, 0, stays_);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_TRUE((*store)->Write("lease", "old"));
  }
  relaying.join();
  const auto client = Client();
  ASSERT_TRUE(client->Write("lease", "new"));
  const auto fd = DialTcp(server_->address(), Soon());
  ASSERT_TRUE(fd);
  const auto said = ::send(fd->get(), recorded.data(), recorded.size(), MSG_NOSIGNAL);
  EXPECT_EQ(said, static_cast<ssize_t>(recorded.size()));
  std::array<char, 4096> piece;
  ssize_t got = 1;
  while (got > 0) {  // an answer to the greeting, then the end
    EXPECT_TRUE(AwaitSocket(fd->get(), POLLIN, Soon()));
    got = ::recv(fd->get(), piece.data(), piece.size(), 0);
  }
  EXPECT_EQ(**client->Read("lease"), "new");
}

}  // namespace
}  // namespace muster::train

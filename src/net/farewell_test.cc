// How a server ends, and what it does to readers that keep too much of it.
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "net/net_testing.h"
#include "net/ws_client.h"
#include "net/ws_testing.h"

namespace muster::net {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Hands out exchanges in the order of their requests.
class Exchanges {
 public:
  Handler Take() {
    return [this](Request, std::shared_ptr<Exchange> exchange) {
      const std::lock_guard lock(mutex_);
      all_.push_back(std::move(exchange));
      more_.notify_all();
    };
  }
  std::shared_ptr<Exchange> Get(std::size_t index) {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [&] { return all_.size() > index; });
    return all_[index];
  }
  void Drop() {
    const std::lock_guard lock(mutex_);
    all_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::shared_ptr<Exchange>> all_;
};

ServerOptions Polite(const std::string& path) {
  auto options = At(path);
  options.refusal = [](int status, const std::string& why) {
    return Response{.status = status, .content_type = "application/problem+json", .body = why};
  };
  return options;
}

TEST(Farewell, WhatWaitsIsAnsweredWith503InTheFormOfRefusals) {
  const SocketFolder folder;
  Exchanges exchanges;
  auto server = StartServer(Polite(folder.Path()), exchanges.Take());
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < 2; ++i) {
    clients.push_back(RawUnix(folder.Path()));
    clients.back().Send(kGet);
    exchanges.Get(i);
  }
  const auto kept = exchanges.Get(0);
  server->Retire();
  exchanges.Drop();  // as a service does with work that comes too late; one is never answered
  server.reset();
  for (auto& client : clients) {
    const auto answer = client.ReadAll();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
    EXPECT_NE(answer.find("application/problem+json"), std::string::npos) << answer;
    EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos) << answer;
  }
}

TEST(Farewell, ARetiredServerRefusesWhatIsAskedAndFinishesWhatItHas) {
  const SocketFolder folder;
  Exchanges exchanges;
  int refused = 0;
  auto options = Polite(folder.Path());
  options.on_refused = [&refused](int status) { refused = status; };
  auto server = StartServer(options, exchanges.Take());
  auto early = RawUnix(folder.Path());
  auto late = RawUnix(folder.Path());
  early.Send(kGet);
  const auto exchange = exchanges.Get(0);
  server->Retire();
  std::promise<void> retired;
  server->Post([&] { retired.set_value(); });
  retired.get_future().wait();
  EXPECT_FALSE(ConnectUnix(folder.Path(), kPatienceMs).has_value());
  late.Send(kGet);
  EXPECT_TRUE(late.ReadAll().starts_with("HTTP/1.1 503 "));
  exchange->Reply({.body = "in time"});
  EXPECT_TRUE(early.ReadAll().ends_with("in time"));
  server.reset();
  EXPECT_EQ(refused, 503);
}

TEST(Farewell, EndlessStreamsEndInOrderAndOthersComeToTheirOwnOrAreCut) {
  const SocketFolder folder;
  Exchanges exchanges;
  auto options = Polite(folder.Path());
  options.farewell_ms = 50;
  auto server = StartServer(options, exchanges.Take());
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < 4; ++i) {
    clients.push_back(RawUnix(folder.Path()));
    clients.back().Send(kGet);
    exchanges.Get(i)->BeginStream(200, "text/plain");
    exchanges.Get(i)->Write("part");
  }
  const auto endless = exchanges.Get(0), stuck = exchanges.Get(3);
  endless->SetEndless();
  exchanges.Get(1)->SetEndless();  // is dropped
  server->Retire();
  server->After(1, [finite = exchanges.Get(2)] { finite->Finish(); });
  exchanges.Drop();
  server.reset();
  for (std::size_t i = 0; i < 4; ++i) {
    const auto answer = clients[i].ReadAll();
    EXPECT_NE(answer.find("part"), std::string::npos) << i;
    EXPECT_EQ(answer.ends_with(kLastChunk), i < 3) << i << answer;
  }
}

TEST(Farewell, AWebSocketIsToldThatTheServerGoes) {
  const SocketFolder folder;
  WsEcho echo;
  auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  client->Send("hello");
  EXPECT_EQ(Next(*client).bytes, "hello");
  std::thread ends([&] { server.reset(); });
  const auto last = Next(*client);
  ends.join();
  EXPECT_TRUE(last.closed);
  EXPECT_EQ(last.code, kWsGoingAway);
}

TEST(Unsent, BeyondTheBoundTheOneWithTheMostIsCutAndOthersGetTheirs) {
  const SocketFolder folder;
  Exchanges exchanges;
  auto options = At(folder.Path());
  options.max_unsent_bytes = std::size_t{6} << 20;
  const auto server = StartServer(options, exchanges.Take());
  const std::vector<std::size_t> sizes = {std::size_t{2} << 20, std::size_t{5} << 20};
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    clients.push_back(RawUnix(folder.Path()));
    clients.back().Send(kGet);
    exchanges.Get(i)->Reply({.body = std::string(sizes[i], 'x')});
  }
  while (!exchanges.Get(1)->gone()) std::this_thread::yield();
  EXPECT_FALSE(exchanges.Get(0)->gone());
  EXPECT_LT(clients[1].ReadAll().size(), sizes[1]);
  EXPECT_TRUE(clients[0].ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
  std::size_t got = 0;
  while (got < sizes[0]) got += clients[0].ReadSome().size();
  EXPECT_EQ(got, sizes[0]);
}

TEST(Unsent, TheOnlyLargeAnswerIsNotCut) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.max_unsent_bytes = 1;
  const auto server = StartServer(options, [](Request, auto exchange) {
    exchange->Reply({.body = std::string(std::size_t{4} << 20, 'x')});
  });
  const auto got = HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->body.size(), std::size_t{4} << 20);
}

}  // namespace
}  // namespace muster::net

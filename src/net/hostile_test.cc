// Clients that mean harm, or might as well.
#include <atomic>
#include <future>
#include <thread>

#include "net/ws_testing.h"

namespace muster::net {
namespace {

// Sends `bytes` again and again until the server has had enough, and returns what it said.
std::string Drip(RawClient& client, std::string_view bytes) {
  std::atomic<bool> over = false;
  std::thread dripping([&] {
    while (!over && client.Send(bytes)) std::this_thread::yield();
  });
  auto said = client.ReadAll();
  over = true;
  dripping.join();
  return said;
}

TEST(Hostile, HeadThatNeverEndsIsGivenUpHoweverBusilyItComes) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.header_timeout_ms = 40;
  const auto server = StartServer(options, Echo);
  auto client = RawUnix(folder.Path());
  client.Send("GET / HTTP/1.1\r\n");
  auto silent = RawUnix(folder.Path());
  silent.Send("GET / HTTP/1.1\r\nX");
  EXPECT_TRUE(silent.ReadAll().starts_with("HTTP/1.1 408 "));
  const auto said = Drip(client, "X: y\r\n");
  EXPECT_TRUE(said.starts_with("HTTP/1.1 408 ") || said.starts_with("HTTP/1.1 431 ")) << said;
}

TEST(Hostile, BodyThatComesTooSlowlyIsGivenUp) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.body_timeout_ms = 40;
  options.min_body_bytes_per_s = std::size_t{1} << 40;
  const auto server = StartServer(options, Echo);
  auto client = RawUnix(folder.Path());
  client.Send("POST / HTTP/1.1\r\nContent-Length: 16000000\r\n\r\n");
  EXPECT_TRUE(Drip(client, "x").starts_with("HTTP/1.1 408 "));
}

TEST(Hostile, BodyThatComesFastEnoughHasTheTimeItNeeds) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.body_timeout_ms = 20;
  options.min_body_bytes_per_s = 1;  // the first byte buys a second
  const auto server = StartServer(options, Echo);
  auto client = RawUnix(folder.Path());
  client.Send("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 1001\r\n\r\n" +
              std::string(1000, 'x'));
  std::promise<void> later;
  server->After(60, [&] { later.set_value(); });
  later.get_future().wait();
  client.Send("y");
  EXPECT_TRUE(client.ReadAll().ends_with("xy"));
}

TEST(Hostile, ConnectionThatNeverSpeaksIsDropped) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.idle_timeout_ms = 40;
  const auto server = StartServer(options, Echo);
  auto client = RawUnix(folder.Path());
  EXPECT_EQ(client.ReadAll(), "");
}

TEST(Hostile, AThousandPipelinedRequestsAreAnsweredInOrder) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  auto client = RawUnix(folder.Path());
  std::string requests;
  for (int i = 0; i < 1000; ++i) {
    requests += "GET /" + std::to_string(i) + (i < 999 ? " HTTP/1.1\r\n\r\n" : " HTTP/1.0\r\n\r\n");
  }
  std::thread sender([&] { client.Send(requests); });
  const auto answers = client.ReadAll();
  sender.join();
  std::size_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    at = answers.find("\r\n\r\nGET /" + std::to_string(i) + " ", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(Hostile, PipeliningWithoutReadingIsHeldBack) {
  const SocketFolder folder;
  std::atomic<int> asked = 0;
  const auto server = StartServer(At(folder.Path()), [&](Request, auto exchange) {
    ++asked;
    exchange->Reply({.body = std::string(1 << 20, 'x')});
  });
  auto client = RawUnix(folder.Path());
  SetSocketTimeout(client.fd(), SO_SNDTIMEO, 200);
  while (client.Send("GET / HTTP/1.1\r\n\r\n")) {
  }
  EXPECT_LE(asked, 3);  // the rest waits in the kernel, or within the bound of what is read ahead
}

TEST(Hostile, HundredMegabyteBodyIsRefusedBeforeItIsRead) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  auto client = RawUnix(folder.Path());
  client.Send("POST / HTTP/1.1\r\nContent-Length: 104857600\r\n\r\n");
  EXPECT_TRUE(client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 413 "));
  auto absurd = RawUnix(folder.Path());
  absurd.Send("POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_TRUE(absurd.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 413 "));
}

TEST(Hostile, BodyLimitIsDecidedByMethodAndPathBeforeTheBodyIsInvited) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.body_limit = [](const Request& head) {
    return head.method == "POST" && head.path == "/batch" ? std::size_t{64} << 20
                                                          : std::size_t{1} << 20;
  };
  const auto server = StartServer(options, [](Request request, auto exchange) {
    exchange->Reply({.body = std::to_string(request.body.size())});
  });
  HttpClient client({.unix_path = folder.Path()});
  const auto status = [&](const char* method, const char* path, std::size_t size) {
    return client
        .Send({.method = method, .path = path, .body = std::string(size, 'b')}, kPatienceMs)
        ->status;
  };
  EXPECT_EQ(status("POST", "/batch", std::size_t{64} << 20), 200);
  EXPECT_EQ(status("POST", "/one", std::size_t{1} << 20), 200);
  EXPECT_EQ(status("POST", "/one", (std::size_t{1} << 20) + 1), 413);
  EXPECT_EQ(status("PUT", "/batch", (std::size_t{1} << 20) + 1), 413);
  auto raw = RawUnix(folder.Path());
  raw.Send("PUT /batch HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9000000\r\n\r\n");
  EXPECT_TRUE(raw.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 413 "));
}

TEST(Hostile, LargeBodiesShareABoundedPartOfMemory) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.max_large_bytes = std::size_t{2} << 20;
  const auto server = StartServer(options, Echo);
  HttpClient client({.unix_path = folder.Path()});
  const auto status = [&](std::size_t size) {
    return client
        .Send({.method = "POST", .path = "/", .body = std::string(size, 'b')}, kPatienceMs)
        ->status;
  };
  {
    auto slow = RawUnix(folder.Path());
    slow.Send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + std::string(700'000, 'a'));
    slow.Send(std::string(100'000, 'a'));
    auto greedy = RawUnix(folder.Path());
    greedy.Send("POST / HTTP/1.1\r\nContent-Length: 900000\r\n\r\n" + std::string(800'000, 'a'));
    EXPECT_TRUE(greedy.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 503 "));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(status(std::size_t{64} << 10), 200);
  }
  // What was refused, answered or cut off is given back, once that is noticed.
  for (int i = 0; i < 10'000 && status(900'000) == 503; ++i) {
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(status(900'000), 200) << i;
}

TEST(Hostile, HeaderBombsAreRefused) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  for (const std::string& bomb : {std::string(1 << 20, 'A'), "GET /" + std::string(1 << 20, 'a'),
                                  "GET / HTTP/1.1\r\nX: " + std::string(1 << 20, 'v')}) {
    auto client = RawUnix(folder.Path());
    client.Send(bomb);
    const auto said = client.ReadAll();
    EXPECT_TRUE(said.starts_with("HTTP/1.1 431 ") || said.starts_with("HTTP/1.1 400 ")) << said;
  }
  std::string many = "GET / HTTP/1.1\r\n";
  while (many.size() < 1 << 20) many += "a:b\r\n";
  auto client = RawUnix(folder.Path());
  client.Send(many);
  EXPECT_TRUE(client.ReadAll().starts_with("HTTP/1.1 431 "));
}

TEST(Hostile, SmuggledRequestsAreNotSeen) {
  const SocketFolder folder;
  std::atomic<int> asked = 0;
  const auto server = StartServer(At(folder.Path()), [&](Request request, auto exchange) {
    ++asked;
    Echo(std::move(request), exchange);
  });
  for (const std::string head :
       {"Content-Length: 5\r\nContent-Length: 0\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n", "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Content-Length : 5\r\n", "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n", "Host: a\r\nHost: b\r\n"}) {
    auto client = RawUnix(folder.Path());
    client.Send("POST / HTTP/1.1\r\n" + head + "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
    const auto said = client.ReadAll();
    EXPECT_TRUE(said.starts_with("HTTP/1.1 400 ")) << head << said;
  }
  EXPECT_EQ(asked, 0);
}

TEST(Hostile, GarbageIsRefusedAndTheServerGoesOn) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  std::string garbage(4096, '\0');
  std::uint32_t state = 1;
  for (int round = 0; round < 50; ++round) {
    for (auto& byte : garbage)
      byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    auto client = RawUnix(folder.Path());
    client.Send(garbage);
    client.EndSending();
    const auto said = client.ReadAll();
    EXPECT_TRUE(said.empty() || said.starts_with("HTTP/1.1 400 ")) << said;
  }
  EXPECT_EQ(HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs)->status, 200);
}

TEST(Hostile, PeersWithTooManyConnectionsAreRefusedUntilTheyCloseSome) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.max_connections_per_peer = 2;
  const auto server = StartServer(options, Echo);
  constexpr std::string_view kGet = "GET / HTTP/1.1\r\n\r\n";
  auto first = RawUnix(folder.Path());
  auto second = RawUnix(folder.Path());
  for (auto* client : {&first, &second}) {
    client->Send(kGet);
    client->ReadUntil("GET / ");
  }
  auto third = RawUnix(folder.Path());
  third.Send(kGet);
  const auto said = third.ReadAll();
  EXPECT_TRUE(said.starts_with("HTTP/1.1 503 "));
  EXPECT_NE(said.find("Retry-After: 1\r\n"), std::string::npos);
  first.Send("GET / HTTP/1.0\r\n\r\n");
  first.ReadAll();
  // The server closes its side once it has seen ours: then there is room.
  first.Close();
  std::string again;
  do {
    auto next = RawUnix(folder.Path());
    next.Send(kGet);
    again = next.ReadUntil("GET / ");
  } while (again.starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(again.starts_with("HTTP/1.1 200 "));
}

TEST(Hostile, PeersThatAskTooFastAreToldWhenToComeBack) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.unix_rate = {.per_minute = 1, .burst = 2};
  const auto server = StartServer(options, Echo);
  HttpClient client({.unix_path = folder.Path()});
  EXPECT_EQ(client.Send({}, kPatienceMs)->status, 200);
  EXPECT_EQ(HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs)->status, 200);
  const auto third = client.Send({}, kPatienceMs);
  EXPECT_EQ(third->status, 429);
  ASSERT_NE(third->Find("Retry-After"), nullptr);
  EXPECT_GT(std::stoi(*third->Find("Retry-After")), 0);
  EXPECT_LE(std::stoi(*third->Find("Retry-After")), 60);
  EXPECT_EQ(client.Send({.method = "POST", .body = "b"}, kPatienceMs)->status, 429);
}

TEST(Hostile, NamesThatTheServerIsNotKnownByAreRefusedOnTcpOnly) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.loopback_port = 0;
  options.host_names = {"localhost"};
  const auto server = StartServer(options, Echo);
  const auto status = [&](const std::string& host) {
    auto client = RawClient(ConnectTcp("127.0.0.1", server->port(), kPatienceMs));
    client.Send("GET / HTTP/1.0\r\nHost: " + host + "\r\n\r\n");
    return client.ReadAll().substr(9, 3);
  };
  EXPECT_EQ(status("localhost:7070"), "200");
  EXPECT_EQ(status("rebound.example"), "421");
  auto local = RawUnix(folder.Path());
  local.Send("GET / HTTP/1.0\r\nHost: anything\r\n\r\n");
  EXPECT_EQ(local.ReadAll().substr(9, 3), "200");
}

}  // namespace
}  // namespace muster::net

#include "net/http_server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "net/net_testing.h"

namespace muster::net {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::string_view kLastGet = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

TEST(HttpServer, AnswersOnUnixSocketAndLoopbackPort) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.loopback_port = 0;
  const auto server = StartServer(options, Echo);
  ASSERT_NE(server->port(), 0);
  for (const Endpoint& endpoint :
       {Endpoint{.unix_path = folder.Path()}, Endpoint{.port = server->port()}}) {
    HttpClient client(endpoint);
    const auto response =
        client.Send({.method = "POST", .path = "/v1/a b", .body = "hello"}, kPatienceMs);
    ASSERT_TRUE(response.has_value()) << Describe(response.error());
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->content_type, "text/plain");
    EXPECT_EQ(response->body, "POST /v1/a b hello");
  }
}

TEST(HttpServer, HandsOverTheWholeRequest) {
  const SocketFolder folder;
  Request seen;
  const auto server =
      StartServer(At(folder.Path()), [&](Request request, std::shared_ptr<Exchange> exchange) {
        seen = std::move(request);
        exchange->Reply({.status = 201, .headers = {{"X-Id", "7"}}, .body = "{}"});
      });
  Request request{.method = "PUT", .path = "/p", .query = {{"a b", "c&d"}}, .body = "x"};
  request.headers = {{"X-Token", "secret"}};
  const auto response = HttpClient({.unix_path = folder.Path()}).Send(request, kPatienceMs);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(*response->Find("x-id"), "7");
  EXPECT_EQ(seen.query, request.query);
  EXPECT_EQ(*seen.Find("x-token"), "secret");
  ASSERT_TRUE(seen.peer.has_value());
  EXPECT_EQ(seen.peer->uid, getuid());
  EXPECT_EQ(seen.peer->gid, getgid());
  EXPECT_EQ(seen.peer->pid, getpid());
}

TEST(HttpServer, KnowsNoPeerOnAPort) {
  std::optional<Peer> peer = Peer{};
  ServerOptions options;
  options.loopback_port = 0;
  const auto server = StartServer(options, [&](Request request, auto exchange) {
    peer = request.peer;
    Echo(std::move(request), exchange);
  });
  ASSERT_TRUE(HttpClient({.port = server->port()}).Send({}, kPatienceMs));
  EXPECT_FALSE(peer.has_value());
}

TEST(HttpServer, AnswersPipelinedRequestsInOrderThoughRepliesCannot) {
  const SocketFolder folder;
  std::promise<std::shared_ptr<Exchange>> first;
  const auto server = StartServer(At(folder.Path()), [&](Request request, auto exchange) {
    if (request.path == "/first") return first.set_value(exchange);
    Echo(std::move(request), exchange);
  });
  auto client = RawUnix(folder.Path());
  client.Send("GET /first HTTP/1.1\r\n\r\nPOST /second HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  client.Send(kLastGet);
  first.get_future().get()->Reply({.body = "one"});
  const auto answers = client.ReadAll();
  const auto one = answers.find("\r\n\r\none");
  const auto two = answers.find("POST /second abc");
  const auto three = answers.find("GET /a ");
  ASSERT_NE(three, std::string::npos) << answers;
  EXPECT_LT(one, two);
  EXPECT_LT(two, three);
}

TEST(HttpServer, TakesRequestsInPieces) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  auto client = RawUnix(folder.Path());
  constexpr std::string_view kRequest =
      "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  for (const char c : kRequest) client.Send({&c, 1});
  EXPECT_NE(client.ReadUntil("abcde").find("POST /p abcde"), std::string::npos);
  for (const char c : kLastGet) client.Send({&c, 1});
  EXPECT_TRUE(client.ReadAll().ends_with("GET /a "));
}

TEST(HttpServer, AnswersClientsThatEndTheirSideFirst) {
  const SocketFolder folder;
  std::vector<std::thread> threads;
  const auto server = StartServer(At(folder.Path()), [&](Request request, auto exchange) {
    threads.emplace_back([request, exchange] {
      while (!exchange->gone()) std::this_thread::yield();
      Echo(request, exchange);
    });
  });
  auto client = RawUnix(folder.Path());
  client.Send(kGet);
  client.Send("GET /b HTTP/1.1\r\n\r\n");
  client.EndSending();
  EXPECT_TRUE(client.ReadAll().ends_with("GET /b "));
  for (auto& thread : threads) thread.join();
}

TEST(HttpServer, InvitesTheBodyOfAClientThatAsks) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  auto client = RawUnix(folder.Path());
  client.Send("POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("abc");
  EXPECT_NE(client.ReadUntil("abc").find("POST / abc"), std::string::npos);
}

TEST(HttpServer, RefusesBytesThatAreNoRequest) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  for (const std::string_view bad :
       {"hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
        "GET /%zz HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    auto client = RawUnix(folder.Path());
    client.Send(bad);
    EXPECT_TRUE(client.ReadAll().starts_with("HTTP/1.1 400 ")) << bad;
  }
  EXPECT_TRUE(HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs).has_value());
}

TEST(HttpServer, RefusesBodiesAndHeadersThatAreTooLarge) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.max_body_bytes = 1000;
  options.max_header_bytes = 2000;
  const auto server = StartServer(options, Echo);
  HttpClient client({.unix_path = folder.Path()});
  const auto send = [&client](std::size_t body, std::size_t header) {
    Request request{.method = "POST", .body = std::string(body, 'x')};
    request.headers = {{"X-Long", std::string(header, 'y')}};
    const auto response = client.Send(request, kPatienceMs);
    return response ? response->status : -1;
  };
  EXPECT_EQ(send(1000, 1500), 200);
  EXPECT_EQ(send(1001, 0), 413);
  EXPECT_EQ(send(8 << 20, 0), 413);  // more than the kernel buffers: the client learns it midway
  EXPECT_EQ(send(0, 2100), 431);
  EXPECT_EQ(send(0, 60'000), 431);
  auto raw = RawUnix(folder.Path());
  raw.Send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + std::string(1000, 'x') +
           "\r\n1\r\nx\r\n0\r\n\r\n");
  EXPECT_TRUE(raw.ReadAll().starts_with("HTTP/1.1 413 "));
}

TEST(HttpServer, TakesTheLongestHeaderAndTheLargestBodyItAllows) {
  const SocketFolder folder;
  std::size_t header = 0;
  const auto server = StartServer(At(folder.Path()), [&](Request request, auto exchange) {
    if (const auto* found = request.Find("X-Long")) header = found->size();
    exchange->Reply({.body = std::to_string(request.body.size())});
  });
  HttpClient client({.unix_path = folder.Path()});
  Request request{.method = "POST", .body = std::string(16 << 20, 'x')};
  request.headers = {{"X-Long", std::string(65'400, 'y')}};
  const auto response = client.Send(request, kPatienceMs);
  ASSERT_TRUE(response.has_value()) << Describe(response.error());
  EXPECT_EQ(response->body, std::to_string(16 << 20));
  EXPECT_EQ(header, 65'400U);
}

TEST(HttpServer, GivesUpOnRequestsThatDoNotArriveAndOnIdleConnections) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.idle_timeout_ms = 80;
  options.header_timeout_ms = 80;
  const auto server = StartServer(options, Echo);
  auto slow = RawUnix(folder.Path());
  slow.Send("GET / HT");
  auto idle = RawUnix(folder.Path());
  idle.Send(kGet);
  EXPECT_TRUE(slow.ReadAll().starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(idle.ReadAll().ends_with("GET /a "));
}

TEST(HttpServer, WaitsForItsHandlerLongerThanForItsClients) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.idle_timeout_ms = 8;
  std::shared_ptr<Exchange> kept;
  std::promise<void> asked;
  auto server = StartServer(options, [&](Request, auto exchange) {
    kept = std::move(exchange);
    asked.set_value();
  });
  auto patient = RawUnix(folder.Path());
  patient.Send(kGet);
  asked.get_future().wait();
  auto idle = RawUnix(folder.Path());  // dropped after the time that the patient one must outlast
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_FALSE(kept->gone());
  kept->Reply({.body = "late"});
  EXPECT_NE(patient.ReadUntil("late").find("200 OK"), std::string::npos);
}

TEST(HttpServer, RefusesConnectionsBeyondItsBound) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.max_connections = 1;
  const auto server = StartServer(options, Echo);
  auto first = RawUnix(folder.Path());
  first.Send(kGet);
  first.ReadUntil("GET /a ");
  auto second = RawUnix(folder.Path());
  second.Send(kGet);
  EXPECT_TRUE(second.ReadAll().starts_with("HTTP/1.1 503 "));
  first.Send(kLastGet);
  EXPECT_TRUE(first.ReadAll().ends_with("GET /a "));
}

TEST(HttpServer, ServesAgainOnceDescriptorsAreFree) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan, which comes with ASan here, needs descriptors for its own checks";
#endif
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd lowest_free(dup(0));
  rlimit none = before;
  none.rlim_cur =
      static_cast<rlim_t>(lowest_free.get()) + 2;  // one for the client, none for accept
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  auto client = RawUnix(folder.Path());
  client.Send(kLastGet);
  std::promise<void> tried;  // the server has been round at least once since the connection came
  server->After(1, [&] { tried.set_value(); });
  tried.get_future().wait();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(client.ReadAll().ends_with("GET /a "));
}

TEST(HttpServer, ServesTwoHundredConnectionsAtOnce) {
  const SocketFolder folder;
  std::vector<std::shared_ptr<Exchange>> waiting;  // nobody is answered before all have asked
  const auto server = StartServer(At(folder.Path()), [&](Request request, auto exchange) {
    waiting.push_back(exchange);
    if (waiting.size() < 200) return;
    for (const auto& each : waiting) each->Reply({.body = request.path});
    waiting.clear();
  });
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(RawUnix(folder.Path()));
  for (int round = 0; round < 3; ++round) {
    for (auto& client : clients) client.Send(kGet);
    for (auto& client : clients) {
      EXPECT_TRUE(client.ReadUntil("\r\n\r\n/a").starts_with("HTTP/1.1 200 OK"));
    }
  }
}

TEST(HttpServer, AnswersFromOtherThreadsEachToItsOwnConnection) {
  const SocketFolder folder;
  std::vector<std::thread> threads;
  const auto server = StartServer(At(folder.Path()), [&](Request request, auto exchange) {
    threads.emplace_back([request = std::move(request), exchange] { Echo(request, exchange); });
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&folder, i] {
      HttpClient client({.unix_path = folder.Path()});
      for (int n = 0; n < 20; ++n) {
        const std::string body = std::to_string(i * 1000 + n);
        const auto response = client.Send({.method = "POST", .body = body}, kPatienceMs);
        ASSERT_TRUE(response.has_value());
        EXPECT_EQ(response->body, "POST / " + body);
      }
    });
  }
  for (auto& client : clients) client.join();
  for (auto& thread : threads) thread.join();
}

TEST(HttpServer, AnswersAnAbandonedExchangeWith500AndGoesOn) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), [&](Request request, auto exchange) {
    if (request.path == "/dropped") return;
    Echo(std::move(request), exchange);
  });
  HttpClient client({.unix_path = folder.Path()});
  EXPECT_EQ(client.Send({.path = "/dropped"}, kPatienceMs)->status, 500);
  EXPECT_EQ(client.Send({.path = "/kept"}, kPatienceMs)->status, 200);
}

TEST(HttpServer, AnswersHeadAndOldClients) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  const auto head = HttpClient({.unix_path = folder.Path()}).Send({.method = "HEAD"}, kPatienceMs);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(*head->Find("Content-Length"), "7");
  auto old = RawUnix(folder.Path());
  old.Send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(old.ReadAll().ends_with("GET /old "));
}

TEST(HttpServer, RunsTasksOnItsThreadTimersInOrderOfTime) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  std::promise<std::thread::id> posted;
  server->Post([&] { posted.set_value(std::this_thread::get_id()); });
  const auto thread = posted.get_future().get();
  EXPECT_NE(thread, std::this_thread::get_id());
  std::vector<int> order;
  std::promise<void> done;
  server->After(20, [&] {
    EXPECT_EQ(std::this_thread::get_id(), thread);
    order.push_back(20);
    done.set_value();
  });
  server->After(1, [&] { order.push_back(1); });
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 20}));
}

TEST(HttpServer, EndsWithConnectionsOpenAndExchangesKept) {
  const SocketFolder folder;
  std::vector<std::shared_ptr<Exchange>> kept;
  std::promise<void> asked;
  auto options = At(folder.Path());
  options.farewell_ms = 1;
  auto server = StartServer(options, [&](Request, auto exchange) {
    kept.push_back(exchange);
    if (kept.size() == 2) asked.set_value();
  });
  auto idle = RawUnix(folder.Path());
  auto waiting = RawUnix(folder.Path());
  auto streaming = RawUnix(folder.Path());
  waiting.Send(kGet);
  streaming.Send(kGet);
  asked.get_future().wait();
  kept[1]->BeginStream(200, "text/plain");
  server->After(3'600'000, [exchange = kept[0]] { exchange->Reply({}); });
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(folder.Path()));
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_TRUE(kept[0]->over() && kept[1]->gone());
  kept[0]->Reply({});
  EXPECT_FALSE(kept[1]->Write("x"));
  kept.clear();
}

TEST(HttpServer, SendsWhatWasAnsweredBeforeItEnds) {
  const SocketFolder folder;
  std::promise<std::shared_ptr<Exchange>> asked;
  auto server =
      StartServer(At(folder.Path()), [&](Request, auto exchange) { asked.set_value(exchange); });
  auto client = RawUnix(folder.Path());
  client.Send(kGet);
  asked.get_future().get()->Reply({.body = "farewell"});
  server.reset();
  EXPECT_TRUE(client.ReadAll().ends_with("farewell"));
}

TEST(HttpServer, DoesNotStartWhereAnotherListensOrWithoutAnAddress) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), Echo);
  EXPECT_EQ(HttpServer::Start(At(folder.Path()), Echo).error().code, ErrorCode::kConflict);
  EXPECT_EQ(HttpServer::Start({}, Echo).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs).has_value());
}

}  // namespace
}  // namespace muster::net

#include "net/http_client.h"

#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "net/net_testing.h"

namespace muster::net {
namespace {

// A server that follows a script: for each connection, for each request on it, an answer; then it
// closes the connection. An empty answer closes it unanswered.
class Scripted {
 public:
  Scripted(const std::string& path, std::vector<std::vector<std::string>> connections) {
    auto listener = ListenUnix(path, 0600);
    if (!listener) throw std::runtime_error(Describe(listener.error()));
    thread_ = std::thread([this, listener = std::move(*listener), connections] {
      for (std::size_t i = 0; i < connections.size(); ++i) {
        Serve(listener.socket.get(), connections[i]);
        if (i == 0) first_closed_.set_value();
      }
    });
  }
  ~Scripted() { thread_.join(); }
  Scripted(const Scripted&) = delete;
  Scripted& operator=(const Scripted&) = delete;

  void AwaitFirstClosed() { first_closed_.get_future().wait(); }

 private:
  void Serve(int listener, const std::vector<std::string>& answers) {
    int socket = -1;
    while ((socket = accept(listener, nullptr, nullptr)) < 0) std::this_thread::yield();
    RawClient peer{Fd(socket)};
    for (const auto& answer : answers) {
      peer.ReadUntil("\r\n\r\n");
      if (!answer.empty()) peer.Send(answer);
    }
  }

  std::promise<void> first_closed_;
  std::thread thread_;
};

std::string Answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(HttpClient, KeepsItsConnection) {
  const SocketFolder folder;
  const Scripted server(folder.Path(), {{Answer("a"), Answer("b"), Answer("c")}});
  HttpClient client({.unix_path = folder.Path()});
  for (const char* body : {"a", "b", "c"}) {
    const auto response = client.Send({.method = "POST"}, kPatienceMs);
    ASSERT_TRUE(response.has_value()) << Describe(response.error());
    EXPECT_EQ(response->body, body);
  }
}

TEST(HttpClient, ReconnectsWhenTheKeptConnectionWasClosedEvenToPost) {
  const SocketFolder folder;
  Scripted server(folder.Path(), {{Answer("a")}, {Answer("b")}});
  HttpClient client({.unix_path = folder.Path()});
  EXPECT_EQ(client.Send({.method = "POST"}, kPatienceMs)->body, "a");
  server.AwaitFirstClosed();
  const auto response = client.Send({.method = "POST"}, kPatienceMs);
  ASSERT_TRUE(response.has_value()) << Describe(response.error());
  EXPECT_EQ(response->body, "b");
}

TEST(HttpClient, RepeatsAGetThatWasNotAnsweredOnAKeptConnection) {
  const SocketFolder folder;
  const Scripted server(folder.Path(), {{Answer("a"), ""}, {Answer("b")}});
  HttpClient client({.unix_path = folder.Path()});
  EXPECT_EQ(client.Send({}, kPatienceMs)->body, "a");
  const auto response = client.Send({}, kPatienceMs);
  ASSERT_TRUE(response.has_value()) << Describe(response.error());
  EXPECT_EQ(response->body, "b");
}

TEST(HttpClient, NeverRepeatsAPostThatMayHaveBeenDone) {
  const SocketFolder folder;
  HttpClient client({.unix_path = folder.Path()});
  {
    const Scripted server(folder.Path(), {{Answer("a"), ""}});
    EXPECT_EQ(client.Send({.method = "POST"}, kPatienceMs)->body, "a");
    const auto response = client.Send({.method = "POST"}, kPatienceMs);
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(response.error().message.find("without an answer"), std::string::npos);
    EXPECT_NE(response.error().hint.find("may have been done"), std::string::npos);
  }
}

TEST(HttpClient, DoesNotRepeatOnAFreshConnection) {
  const SocketFolder folder;
  const Scripted server(folder.Path(), {{""}});
  const auto response = HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
}

TEST(HttpClient, ReadsBodiesThatEndWithTheConnection) {
  const SocketFolder folder;
  const Scripted server(folder.Path(), {{"HTTP/1.1 200 OK\r\n\r\nall of it"}});
  const auto response = HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "all of it");
}

TEST(HttpClient, NoticesAnswersThatAreCutOrNoHttp) {
  const SocketFolder folder;
  for (const std::string bad :
       {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 2", "220 mail.example\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    const Scripted server(folder.Path(), {{bad}});
    const auto response = HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs);
    ASSERT_FALSE(response.has_value()) << bad;
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(response.error().message.find(folder.Path()), std::string::npos);
  }
}

TEST(HttpClient, SaysHowToStartADaemonThatIsNotThere) {
  const SocketFolder folder;
  for (const std::string& path : {folder.Path("none"), folder.Path("missing/none")}) {
    const auto response = HttpClient({.unix_path = path}).Send({}, kPatienceMs);
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(response.error().message.find(path), std::string::npos);
    EXPECT_EQ(response.error().hint,
              "is musterd running? `systemctl start musterd` or `musterd` starts it");
  }
  std::uint16_t port = 0;
  {
    const auto listener = ListenLoopback(0);
    port = PortOf(*listener);
  }
  const auto response = HttpClient({.port = port}).Send({}, kPatienceMs);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(response.error().message.find(std::to_string(port)), std::string::npos);
}

TEST(HttpClient, IsDeniedWhereTheSocketIsNotForIt) {
  const SocketFolder folder;
  const auto listener = ListenUnix(folder.Path(), 0);
  const uid_t before = geteuid();
  if (before == 0) {
    ASSERT_EQ(seteuid(65534), 0);  // root may open every socket
  }
  const auto response = HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs);
  ASSERT_EQ(seteuid(before), 0);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kDenied);
}

TEST(HttpClient, GivesUpInTimeAndIsOfUseAfterwards) {
  const SocketFolder folder;
  std::shared_ptr<Exchange> kept;
  ServerOptions options;
  options.unix_path = folder.Path();
  const auto server = StartServer(options, [&](Request request, auto exchange) {
    if (request.path == "/never") {
      kept = exchange;
    } else {
      Echo(std::move(request), exchange);
    }
  });
  HttpClient client({.unix_path = folder.Path()});
  const auto late = client.Send({.path = "/never"}, 30);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
  const auto response = client.Send({.path = "/now"}, kPatienceMs);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "GET /now ");  // not the late answer to the first
}

TEST(HttpClient, RefusesHeadersThatWouldBecomeTwo) {
  Request request;
  request.headers = {{"X", "a\r\nY: b"}};
  const auto response = HttpClient({.unix_path = "/nowhere"}).Send(request, kPatienceMs);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
}

TEST(HttpClient, SendsAndReceivesMoreThanTheKernelBuffers) {
  const SocketFolder folder;
  ServerOptions options;
  options.unix_path = folder.Path();
  const auto server = StartServer(options, Echo);
  HttpClient client({.unix_path = folder.Path()});
  const std::string body(10 << 20, 'z');
  for (int round = 0; round < 2; ++round) {
    const auto response = client.Send({.method = "POST", .body = body}, kPatienceMs);
    ASSERT_TRUE(response.has_value()) << Describe(response.error());
    EXPECT_EQ(response->body.size(), body.size() + 7);
  }
}

}  // namespace
}  // namespace muster::net

#include "net/ws_client.h"

#include "net/tls_testing.h"
#include "net/ws_testing.h"

namespace muster::net {
namespace {

TEST(WsClient, SpeaksOverTlsWithHeaders) {
  const SocketFolder folder;
  const auto files = MakeCertificate(folder, "a");
  WsEcho echo;
  std::string token;
  const auto server = StartServer(OverTls(files), [&](Request request, auto exchange) {
    token = *request.Find("Authorization");
    echo.Handle()(std::move(request), exchange);
  });
  Request request{.path = "/shell", .query = {{"a", "b c"}}};
  request.headers = {{"Authorization", "Bearer t"}};
  auto answer = WsClient::Connect(Secure(*server, files), request, kPatienceMs);
  ASSERT_TRUE(answer.has_value()) << Describe(answer.error());
  ASSERT_NE(answer->socket, nullptr);
  EXPECT_EQ(token, "Bearer t");
  auto& client = *answer->socket;
  // More than one record, and more than what lies in one read.
  for (const std::size_t size : std::initializer_list<std::size_t>{5, 20'000, 1 << 20}) {
    ASSERT_TRUE(client.Send(std::string(size, 's')));
    EXPECT_EQ(Next(client).bytes.size(), size);
  }
  client.Close(kWsNormal, "bye");
  const auto end = Next(client);
  EXPECT_TRUE(end.closed);
  EXPECT_EQ(end.code, kWsNormal);
  EXPECT_FALSE(client.Send("late"));
  EXPECT_EQ(echo.AwaitClosed(), (std::pair<int, std::string>(kWsNormal, "bye")));
}

TEST(WsClient, HasNothingAndDoesNotWaitWhenNothingHasCome) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  const auto got = client->Receive();
  ASSERT_TRUE(got.has_value());
  EXPECT_FALSE(got->has_value());
  EXPECT_FALSE(client->Wait(0));
  client->Send("x");
  EXPECT_EQ(Next(*client).bytes, "x");
}

TEST(WsClient, SaysThatTheDaemonIsGone) {
  const SocketFolder folder;
  EXPECT_EQ(WsClient::Connect({.unix_path = folder.Path()}, {}, kPatienceMs).error().code,
            ErrorCode::kUnavailable);
  WsEcho echo;
  auto options = At(folder.Path());
  options.farewell_ms = 1;
  auto server = StartServer(options, echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  server.reset();
  const auto end = Next(*client);
  EXPECT_TRUE(end.closed);
  EXPECT_EQ(end.code, kWsGoingAway) << end.bytes;
}

TEST(WsClient, DoesNotBelieveAServerThatDoesNotKnowTheProtocol) {
  const SocketFolder folder;
  auto listener = ListenUnix(folder.Path(), 0600);
  ASSERT_TRUE(listener.has_value());
  std::thread server([&] {
    int socket = -1;
    while ((socket = accept(listener->socket.get(), nullptr, nullptr)) < 0) {
      std::this_thread::yield();
    }
    RawClient peer{Fd(socket)};
    peer.ReadUntil("\r\n\r\n");
    peer.Send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  });
  const auto answer = WsClient::Connect({.unix_path = folder.Path()}, {}, kPatienceMs);
  server.join();
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().message.find("WebSocket"), std::string::npos);
}

}  // namespace
}  // namespace muster::net

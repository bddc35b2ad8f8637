#include "net/websocket.h"

#include <thread>

#include "net/net_testing.h"
#include "net/ws_client.h"
#include "net/ws_testing.h"

namespace muster::net {
namespace {

TEST(WebSocket, CarriesMessagesBothWaysFromAnyThread) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  for (const std::size_t size : std::initializer_list<std::size_t>{1, 125, 126, 70'000, 1 << 20}) {
    ASSERT_TRUE(client->Send(std::string(size, 'm')));
    EXPECT_EQ(Next(*client).bytes, std::string(size, 'm'));
  }
  const auto socket = echo.Socket();
  std::thread other([&] { EXPECT_TRUE(socket->Send("from another thread")); });
  EXPECT_EQ(Next(*client).bytes, "from another thread");
  other.join();
}

TEST(WebSocket, IsANormalRequestWhenItIsAnsweredSo) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), [](Request, auto exchange) {
    exchange->Reply({.status = 409, .content_type = "text/plain", .body = "not running"});
  });
  const auto answer = WsClient::Connect({.unix_path = folder.Path()}, {}, kPatienceMs);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->socket, nullptr);
  EXPECT_EQ(answer->refusal.status, 409);
  EXPECT_EQ(answer->refusal.body, "not running");
}

TEST(WebSocket, IsNoneForRequestsThatDidNotAskOrWereAnswered) {
  const SocketFolder folder;
  const auto server = StartServer(At(folder.Path()), [](Request, auto exchange) {
    EXPECT_EQ(exchange->Upgrade({}), nullptr);
    exchange->Reply({.status = 426});
    EXPECT_EQ(exchange->Upgrade({}), nullptr);
  });
  EXPECT_EQ(HttpClient({.unix_path = folder.Path()}).Send({}, kPatienceMs)->status, 426);
}

TEST(WebSocket, OtherSitesPagesAreRefused) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  Request request;
  request.headers = {{"Origin", "https://evil.example"}};
  const auto refused = WsClient::Connect({.unix_path = folder.Path()}, request, kPatienceMs);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->refusal.status, 403);
  request.headers = {{"Origin", "http://localhost"}};
  EXPECT_NE(WsClient::Connect({.unix_path = folder.Path()}, request, kPatienceMs)->socket, nullptr);
}

TEST(WebSocket, FramesThatComeWithTheRequestAreNotLost) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = RawUnix(folder.Path());
  client.Send(std::string(kUpgradeRequest) + MaskedFrame(WsOp::kText, "early"));
  EXPECT_TRUE(client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  EXPECT_EQ(client.ReadUntil("early"),
            "\x82\x05"
            "early");
}

TEST(WebSocket, AnswersPingsAndClosesInGoodOrder) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = RawUnix(folder.Path());
  client.Send(kUpgradeRequest);
  client.ReadUntil("\r\n\r\n");
  client.Send(MaskedFrame(WsOp::kPing, "?"));
  EXPECT_EQ(client.ReadUntil("?"), "\x8a\x01?");
  std::string close;
  AppendClose(close, 4005, "enough", &kTestMask);
  client.Send(close);
  std::string answer;
  AppendClose(answer, 4005, "");
  EXPECT_EQ(client.ReadAll(), answer);
  EXPECT_EQ(echo.AwaitClosed(), (std::pair<int, std::string>(4005, "enough")));
  EXPECT_FALSE(echo.Socket()->Send("late"));
}

TEST(WebSocket, SendsAllBeforeItsOwnClose) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  const auto socket = echo.Socket();
  const std::string large(3 << 20, 'l');
  EXPECT_TRUE(socket->Send(large));
  socket->Close(4002, "over");
  EXPECT_FALSE(socket->Send("behind it"));
  EXPECT_EQ(Next(*client).bytes, large);
  const auto end = Next(*client);
  EXPECT_TRUE(end.closed);
  EXPECT_EQ(end.code, 4002);
  EXPECT_EQ(end.bytes, "over");
  EXPECT_EQ(echo.AwaitClosed().first, 4002);
}

TEST(WebSocket, DroppedByItsHoldersIsClosed) {
  const SocketFolder folder;
  const auto server = StartServer(
      At(folder.Path()), [](Request, auto exchange) { EXPECT_NE(exchange->Upgrade({}), nullptr); });
  auto client = Connected({.unix_path = folder.Path()});
  EXPECT_EQ(Next(*client).code, kWsGoingAway);
}

TEST(WebSocket, LearnsThatThePeerIsLost) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  const auto socket = echo.Socket();
  client.reset();
  EXPECT_EQ(echo.AwaitClosed().first, kWsLost);
  EXPECT_TRUE(socket->gone());
}

TEST(WebSocket, ClosesOnBrokenFramesAndMessagesThatAreTooLarge) {
  const SocketFolder folder;
  auto options = At(folder.Path());
  options.max_message_bytes = 1000;
  struct Case {
    std::string bytes;
    int code;
  };
  for (const auto& [bytes, code] :
       {Case{MaskedFrame(WsOp::kBinary, std::string(1001, 'x')), kWsTooLarge},
        Case{"\x82\x01x", kWsProtocolError}, Case{"\xff\xff\xff\xff", kWsProtocolError},
        Case{MaskedFrame(WsOp::kText, "\xff"), kWsBadText}}) {
    WsEcho echo;
    const auto server = StartServer(options, echo.Handle());
    auto client = RawUnix(folder.Path());
    client.Send(kUpgradeRequest);
    client.ReadUntil("\r\n\r\n");
    client.Send(bytes);
    std::string close;
    AppendClose(close, code, "");
    EXPECT_EQ(client.ReadAll(), close);
    EXPECT_EQ(echo.AwaitClosed().first, code);
  }
}

TEST(WebSocket, QueueForAPeerThatDoesNotReadIsBoundedAndDrains) {
  const SocketFolder folder;
  WsEcho echo;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  const auto socket = echo.Socket();
  const std::string block(256 << 10, 'b');
  int sent = 0;
  while (socket->Send(block)) ++sent;
  EXPECT_FALSE(socket->gone());
  EXPECT_LE(socket->Queued(), kMostQueuedBytes + 100);
  for (int i = 0; i < sent; ++i) EXPECT_EQ(Next(*client).bytes.size(), block.size());
  echo.AwaitDrained();
  EXPECT_TRUE(socket->Send("again"));
  EXPECT_EQ(Next(*client).bytes, "again");
}

TEST(WebSocket, PausedReaderHoldsItsPeerBackAndLosesNothing) {
  const SocketFolder folder;
  WsEcho echo;
  echo.begin_paused = true;
  const auto server = StartServer(At(folder.Path()), echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  const std::string block(64 << 10, 'b');
  std::size_t sent = 0;
  // Until the client's own queue holds a MiB: what lies before it is the kernel's and the server's.
  while (client->Queued() < (1 << 20)) {
    ASSERT_TRUE(client->Send(block));
    ++sent;
  }
  EXPECT_EQ(echo.messages(), 0U);
  EXPECT_LT(sent * block.size(), std::size_t{16} << 20);
  echo.Socket()->Resume();
  for (std::size_t i = 0; i < sent; ++i) ASSERT_EQ(Next(*client).bytes.size(), block.size());
  EXPECT_EQ(echo.messages(), sent);
}

TEST(WebSocket, SilentPeersAreAskedAndThenGivenUp) {
  const SocketFolder folder;
  WsEcho echo;
  auto options = At(folder.Path());
  options.ping_interval_ms = 20;
  const auto server = StartServer(options, echo.Handle());
  auto silent = RawUnix(folder.Path());
  silent.Send(kUpgradeRequest);
  silent.ReadUntil("\r\n\r\n");
  EXPECT_EQ(silent.ReadAll(), std::string("\x89\x00", 2));
  EXPECT_EQ(echo.AwaitClosed().first, kWsLost);
}

TEST(WebSocket, PeersThatAnswerPingsStay) {
  const SocketFolder folder;
  WsEcho echo;
  auto options = At(folder.Path());
  options.ping_interval_ms = 10;
  const auto server = StartServer(options, echo.Handle());
  auto client = RawUnix(folder.Path());
  client.Send(kUpgradeRequest);
  client.ReadUntil("\r\n\r\n");
  const std::string ping("\x89\x00", 2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.ReadUntil(ping), ping);
    client.Send(MaskedFrame(WsOp::kPong, ""));
  }
  client.Send(MaskedFrame(WsOp::kBinary, "here"));
  EXPECT_NE(client.ReadUntil("here").find("here"), std::string::npos);
}

TEST(WebSocket, GivesUpOnPeersThatDoNotAnswerItsClose) {
  const SocketFolder folder;
  WsEcho echo;
  auto options = At(folder.Path());
  options.handshake_timeout_ms = 20;
  const auto server = StartServer(options, echo.Handle());
  auto client = RawUnix(folder.Path());
  client.Send(kUpgradeRequest);
  client.ReadUntil("\r\n\r\n");
  echo.Socket()->Close(kWsNormal, "");
  client.ReadAll();
  EXPECT_EQ(echo.AwaitClosed().first, kWsLost);
}

TEST(WebSocket, OutlivesItsServer) {
  const SocketFolder folder;
  WsEcho echo;
  auto options = At(folder.Path());
  options.farewell_ms = 1;
  auto server = StartServer(options, echo.Handle());
  auto client = Connected({.unix_path = folder.Path()});
  const auto socket = echo.Socket();
  server.reset();
  EXPECT_TRUE(socket->gone());
  EXPECT_FALSE(socket->Send("x"));
  socket->Close(kWsNormal, "");
  socket->Resume();
}

}  // namespace
}  // namespace muster::net

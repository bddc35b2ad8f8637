#include "net/tls.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/clock.h"
#include "net/net_testing.h"
#include "net/tls_testing.h"

namespace muster::net {
namespace {

RawClient RawTcp(std::uint16_t port) {
  return RawClient(ConnectTcp("127.0.0.1", port, kPatienceMs));
}

std::string Said(const Result<Response>& response) {
  return response ? "" : Describe(response.error());
}

TEST(Tls, AnswersAndSaysWhereTheRequestCameFrom) {
  const SocketFolder folder;
  const auto files = MakeCertificate(folder, "a");
  Request seen;
  const auto server = StartServer(OverTls(files), [&](Request request, auto exchange) {
    seen = request;
    Echo(std::move(request), exchange);
  });
  for (const char* host : {"localhost", "127.0.0.1"}) {
    HttpClient client(Secure(*server, files, host));
    for (int round = 0; round < 2; ++round) {
      const auto response = client.Send({.method = "POST", .body = "hello"}, kPatienceMs);
      ASSERT_TRUE(response.has_value()) << Said(response);
      EXPECT_EQ(response->body, "POST / hello");
    }
  }
  EXPECT_FALSE(seen.peer.has_value());
  EXPECT_EQ(seen.remote, "127.0.0.1");
}

TEST(Tls, MovesMoreThanTheKernelBuffersBothWays) {
  const SocketFolder folder;
  const auto files = MakeCertificate(folder, "a");
  const auto server = StartServer(OverTls(files), Echo);
  HttpClient client(Secure(*server, files));
  const std::string body(8 << 20, 'z');
  const auto response = client.Send({.method = "POST", .body = body}, kPatienceMs);
  ASSERT_TRUE(response.has_value()) << Said(response);
  EXPECT_EQ(response->body, "POST / " + body);
}

TEST(Tls, StreamsAndTellsAnEndFromACut) {
  const SocketFolder folder;
  const auto files = MakeCertificate(folder, "a");
  const auto server = StartServer(OverTls(files), [](Request request, auto exchange) {
    exchange->BeginStream(200, "text/plain");
    exchange->Write("half");
    if (request.path == "/whole") exchange->Finish();
  });
  HttpClient client(Secure(*server, files));
  std::string all;
  const auto collect = [&all](std::string_view chunk) {
    all += chunk;
    return true;
  };
  ASSERT_TRUE(client.Stream({.path = "/whole"}, kPatienceMs, collect).has_value());
  const auto cut = client.Stream({.path = "/cut"}, kPatienceMs, collect);
  ASSERT_FALSE(cut.has_value());
  EXPECT_NE(cut.error().message.find("middle"), std::string::npos);
  EXPECT_EQ(all, "halfhalf");
}

TEST(Tls, ClientTrustsOnlyWhatItWasToldToAndOnlyForThatHost) {
  const SocketFolder folder;
  const auto files = MakeCertificate(folder, "a");
  const auto other = MakeCertificate(folder, "b");
  const auto server = StartServer(OverTls(files), Echo);
  for (const auto& endpoint : {Secure(*server, other), Secure(*server, {})}) {
    const auto response = HttpClient(endpoint).Send({}, kPatienceMs);
    ASSERT_FALSE(response.has_value());
    EXPECT_NE(Said(response).find("self-signed"), std::string::npos) << Said(response);
  }
  const auto named = MakeCertificate(folder, "c", "DNS:elsewhere.example");
  const auto elsewhere = StartServer(OverTls(named), Echo);
  for (const char* host : {"localhost", "127.0.0.1"}) {
    const auto response = HttpClient(Secure(*elsewhere, named, host)).Send({}, kPatienceMs);
    ASSERT_FALSE(response.has_value());
    EXPECT_NE(Said(response).find("mismatch"), std::string::npos) << Said(response);
  }
  const auto missing = HttpClient(Secure(*server, {.certificate = "/none"})).Send({}, kPatienceMs);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(Tls, ACertificateThatNobodyKnowsNamesTheFlagForItsRoot) {
  const SocketFolder folder;
  const auto server = StartServer(OverTls(MakeCertificate(folder, "own")), Echo);
  const auto other = MakeCertificate(folder, "other");
  const auto unknown = HttpClient(Secure(*server, other)).Send({}, kPatienceMs);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().hint.find("--ca FILE"), std::string::npos) << unknown.error().hint;
  const auto named = MakeCertificate(folder, "named", "DNS:elsewhere");
  const auto elsewhere = StartServer(OverTls(named), Echo);
  const auto mismatch = HttpClient(Secure(*elsewhere, named)).Send({}, kPatienceMs);
  ASSERT_FALSE(mismatch.has_value());
  EXPECT_NE(mismatch.error().hint.find("name in its certificate"), std::string::npos);
}

TEST(Tls, TheEndOfACertificateIsReadFromItsFile) {
  const SocketFolder folder;
  const auto files = MakeCertificate(folder, "ends");  // in two days
  const auto end_ms = CertificateEndMs(files.certificate);
  ASSERT_TRUE(end_ms) << end_ms.error().message;
  const auto left_ms = *end_ms - SystemClock().WallMs();
  EXPECT_GT(left_ms, std::int64_t{86'400'000});
  EXPECT_LE(left_ms, std::int64_t{2} * 86'400'000);
  EXPECT_EQ(CertificateEndMs(files.key).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(CertificateEndMs("/none").error().code, ErrorCode::kNotFound);
}

TEST(Tls, ReloadsForNewConnectionsAndKeepsTheOldPairWhenTheNewOneIsBroken) {
  const SocketFolder folder;
  const auto files = MakeCertificate(folder, "used");
  const auto next = MakeCertificate(folder, "next");
  const TlsFiles first{.certificate = folder.Path("first.pem"), .key = ""};
  std::filesystem::copy_file(files.certificate, first.certificate);
  const auto server = StartServer(OverTls(files), Echo);
  HttpClient before(Secure(*server, first));
  ASSERT_TRUE(before.Send({}, kPatienceMs).has_value());

  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(next.certificate, files.certificate, overwrite);
  const auto mixed = server->ReloadTls();  // the new certificate with the old key
  ASSERT_FALSE(mixed.has_value());
  EXPECT_EQ(mixed.error().code, ErrorCode::kInvalid);
  EXPECT_NE(mixed.error().message.find(files.key), std::string::npos);
  EXPECT_TRUE(HttpClient(Secure(*server, first)).Send({}, kPatienceMs).has_value());

  std::filesystem::copy_file(next.key, files.key, overwrite);
  ASSERT_TRUE(server->ReloadTls().has_value());
  EXPECT_TRUE(HttpClient(Secure(*server, next)).Send({}, kPatienceMs).has_value());
  EXPECT_FALSE(HttpClient(Secure(*server, first)).Send({}, kPatienceMs).has_value());
  EXPECT_TRUE(before.Send({}, kPatienceMs).has_value());  // its connection is not touched

  std::filesystem::remove(files.key);
  EXPECT_EQ(server->ReloadTls().error().code, ErrorCode::kNotFound);
  std::ofstream(files.key) << "no key\n";
  EXPECT_EQ(server->ReloadTls().error().code, ErrorCode::kInvalid);
}

TEST(Tls, PlainClientsGetAnAnswerTheyCanRead) {
  const SocketFolder folder;
  const auto server = StartServer(OverTls(MakeCertificate(folder, "a")), Echo);
  auto client = RawTcp(server->tcp_port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto answer = client.ReadAll();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 "));
  EXPECT_NE(answer.find("https://"), std::string::npos);
}

TEST(Tls, GivesUpOnHandshakesThatDoNotComeToAnEnd) {
  const SocketFolder folder;
  auto options = OverTls(MakeCertificate(folder, "a"));
  options.handshake_timeout_ms = 40;
  const auto server = StartServer(options, Echo);
  auto silent = RawTcp(server->tcp_port());
  auto half = RawTcp(server->tcp_port());
  half.Send("\x16\x03\x01\x02");
  auto garbage = RawTcp(server->tcp_port());
  garbage.Send("\x16\x03\x01\x01\x01" + std::string(300, '\x7f'));
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(half.ReadAll(), "");
  garbage.ReadAll();  // an alert, then the end
}

TEST(Tls, ServerDoesNotListenBeyondThisMachineInTheClear) {
  for (const char* address : {"0.0.0.0", "::", "10.1.2.3"}) {
    ServerOptions options;
    options.tcp = TcpAddress{.address = address};
    const auto server = HttpServer::Start(options, Echo);
    ASSERT_FALSE(server.has_value()) << address;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
    EXPECT_NE(server.error().message.find("without TLS"), std::string::npos);
  }
  ServerOptions options;
  options.tcp = TcpAddress{.address = "nowhere"};
  options.tls = TlsFiles{.certificate = "/none", .key = "/none"};
  EXPECT_EQ(HttpServer::Start(options, Echo).error().code, ErrorCode::kNotFound);
  options.tcp.reset();
  EXPECT_EQ(HttpServer::Start(options, Echo).error().code, ErrorCode::kInvalid);
}

TEST(Tls, ServesPlainTcpOnLoopbackOfBothKinds) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    ServerOptions options;
    options.tcp = TcpAddress{.address = address};
    std::string remote;
    auto server = HttpServer::Start(options, [&](Request request, auto exchange) {
      remote = request.remote;
      Echo(std::move(request), exchange);
    });
    if (!server && server.error().code == ErrorCode::kUnavailable) continue;  // no IPv6 here
    ASSERT_TRUE(server.has_value()) << Describe(server.error());
    HttpClient client({.host = address, .port = (*server)->tcp_port()});
    ASSERT_TRUE(client.Send({}, kPatienceMs).has_value());
    EXPECT_EQ(remote, address);
  }
}

}  // namespace
}  // namespace muster::net

// Any bytes as what a client sends to a real server over a Unix socket: no crash, no hang, no leak,
// and the connection always comes to an end. Whoever asks for a WebSocket gets one that sends back.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "net/http_server.h"
#include "net/sockets.h"
#include "net/ws_frame.h"

namespace {

namespace net = muster::net;

void Answer(net::Request request, const std::shared_ptr<net::Exchange>& exchange) {
  const auto socket = std::make_shared<std::shared_ptr<net::WebSocket>>();
  *socket =
      exchange->Upgrade({.on_message =
                             [socket](std::string message) {
                               if (*socket) (*socket)->Send(std::move(message));
                             },
                         .on_closed = [socket](int, const std::string&) { socket->reset(); }});
  if (*socket) return;
  net::Response response;
  response.body = request.method + request.path + request.body;
  exchange->Reply(std::move(response));
}

struct Running {
  Running() {
    net::WsAccept("");  // OpenSSL arranges its end now, so that the server's comes before it
    path = "/tmp/muster-http-fuzz-" + std::to_string(getpid());
    net::ServerOptions options;
    options.unix_path = path;
    options.max_body_bytes = 4096;
    options.max_message_bytes = 4096;
    auto started = net::HttpServer::Start(options, Answer);
    MUSTER_CHECK(started.has_value(), "the server starts");
    server = std::move(*started);
  }

  std::string path;
  std::unique_ptr<net::HttpServer> server;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Running running;
  auto client = net::ConnectUnix(running.path, 5000);
  MUSTER_CHECK(client.has_value(), "the server accepts");
  net::SetSocketTimeout(client->get(), SO_RCVTIMEO, 5000);
  // Small enough for the kernel to take all of it at once.
  send(client->get(), data, size, MSG_NOSIGNAL);
  shutdown(client->get(), SHUT_WR);
  std::array<char, 4096> block{};
  ssize_t got = 0;
  do {
    got = recv(client->get(), block.data(), block.size(), 0);
  } while (got > 0 || (got < 0 && errno == EINTR));  // libFuzzer's own alarm
  MUSTER_CHECK(got == 0 || errno == ECONNRESET, "the connection comes to an end");
  return 0;
}

// HttpServer: HTTP/1.1 on a Unix socket, on a loopback port, on a network with TLS, or on all of
// them; what it means is the handler's business.
//
// One thread of its own reads, writes and calls the handler, which must therefore not block.
// Answers may come later and from any thread. Requests of one connection are handed out one after
// the other, so pipelined answers keep their order. Everything a client can make us hold is
// bounded: head, body, requests ahead of the answer, unread stream, connections, time for a
// request. An idle connection holds no buffer; a small request and its answer take about 12 us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http.h"
#include "net/peers.h"
#include "net/tls.h"
#include "net/websocket.h"

namespace muster::net {

inline constexpr std::size_t kMostQueuedBytes = std::size_t{8} << 20;

// One request that waits for its answer. Thread-safe; may outlive its connection and its server.
// Dropped without an answer it answers 500, or 503 while the server ends; dropped within a stream
// it cuts the connection, so that the reader knows the end is missing.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void Reply(Response response) = 0;  // the first answer counts, later ones are ignored
  virtual void BeginStream(int status, std::string content_type, std::vector<Header> headers) = 0;
  void BeginStream(int status, std::string content_type) {
    BeginStream(status, std::move(content_type), {});
  }
  // The stream has no end of its own, as events have none: a server that ends gives it one in
  // order, where others are cut unless they come to their own in time.
  virtual void SetEndless() = 0;
  // False: nothing of it was queued, because the peer has gone, the stream is over, or more than
  // kMostQueuedBytes would wait for a reader that does not read. In the last case it may be tried
  // again later. A chunk of any size is taken when nothing is queued.
  virtual bool Write(std::string chunk) = 0;
  virtual std::size_t Queued() const = 0;
  virtual void Finish() = 0;
  virtual void Abort() = 0;  // cuts it, so that the reader knows that the end is missing
  // The peer has closed its side. An answer is sent all the same, if it can be.
  virtual bool gone() const = 0;
  virtual bool over() const = 0;  // gone, or everything is said
  // Instead of an answer. Null: the request did not ask for a WebSocket, was answered already, or
  // its peer has gone; it is then to be answered as any other.
  virtual std::shared_ptr<WebSocket> Upgrade(WebSocketHandlers handlers) = 0;
};

using Handler = std::function<void(Request, std::shared_ptr<Exchange>)>;

struct TcpAddress {
  std::string address = "127.0.0.1";  // numeric; beyond this machine only with `tls`
  std::uint16_t port = 0;             // 0: any free one
};

struct ServerOptions {
  std::string unix_path;  // empty: no Unix socket
  std::uint32_t unix_mode = 0666;
  std::optional<std::uint16_t> loopback_port;  // on 127.0.0.1 only, plain; 0: any free one
  std::optional<TcpAddress> tcp;
  std::optional<TlsFiles> tls;          // for `tcp`
  std::vector<std::string> host_names;  // that TCP clients know us by; empty: any

  std::size_t max_header_bytes = std::size_t{64} << 10;  // 64 KiB is also the most
  std::size_t max_body_bytes = std::size_t{16} << 20;
  // Instead of max_body_bytes, asked before a body is read. On the server's thread.
  std::function<std::size_t(const Request& head)> body_limit;
  // Of all bodies that are arriving or being answered, beyond 64 KiB of each; a peer has at most
  // half.
  std::size_t max_large_bytes = std::size_t{256} << 20;
  // Of all answers that wait for their readers. Beyond it the largest one of the peer with the most
  // is cut, but never the only one there is.
  std::size_t max_unsent_bytes = std::size_t{256} << 20;
  // The form of what the server itself refuses; without it plain text.
  std::function<Response(int status, const std::string& why)> refusal;
  // Told of each request that the server refused itself, before any handler saw it.
  std::function<void(int status)> on_refused;
  std::size_t max_message_bytes = std::size_t{1} << 20;  // of a WebSocket
  int max_connections = 4096;
  // Of one user, IPv4 address or /64 of IPv6.
  int max_connections_per_peer = 1024;
  RateLimit tcp_rate{.per_minute = 30'000, .burst = 1000};  // beyond it: 429 with Retry-After
  RateLimit unix_rate{};

  int handshake_timeout_ms = 10'000;  // of TLS; also for the answer to a WebSocket's close
  int header_timeout_ms = 20'000;     // from the first byte of a head to its last
  // A body may take this long, and a second more for each min_body_bytes_per_s that have come.
  int body_timeout_ms = 30'000;
  std::size_t min_body_bytes_per_s = std::size_t{16} << 10;
  int idle_timeout_ms = 60'000;  // for an idle connection, and for a reader that does not read
  // Silent for so long a WebSocket's peer is asked for a sign of life, and has as long to give it.
  int ping_interval_ms = 30'000;
  int farewell_ms = 2'000;  // for what is left to be said when the server ends
};

// Where a relay leads: a Unix stream socket, or a port of this machine when the path is empty.
struct RelayTarget {
  std::string unix_path{};
  std::uint16_t loopback_port = 0;
  bool loopback_v6 = false;           // ::1, not 127.0.0.1
  std::string first_bytes{};          // sent to the target before anything else
  std::function<void()> on_closed{};  // both ends are closed; on the server's thread
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Start(ServerOptions options, Handler handler);
  // Retires, answers what still waits with 503, ends endless streams, says goodbye to WebSockets,
  // and closes each connection once that is sent, or when farewell_ms are over. Not from the
  // server's own thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // From now on no connection is accepted, and what is asked on one that is open is answered with
  // 503. Exchanges that were handed out before may still be answered. From any thread.
  void Retire();

  // All of these from any thread. Post and After run the task on the server's; what is still
  // waiting when the server ends is dropped.
  void Post(std::function<void()> task);
  void After(int ms, std::function<void()> task);
  // Reads the certificate and the key again, for connections that come from now on. When they
  // cannot be used, those in use stay.
  Result<void> ReloadTls();

  // Joins the exchange's WebSocket and a target: bytes of the target become binary messages,
  // messages become bytes. An empty message from the client ends the target's input; the target's
  // own end closes the WebSocket with 1000, a target that cannot be reached with 1011 and the
  // reason. Neither side is read faster than the other takes it. Closing what is returned ends it;
  // nothing there: the request did not ask for a WebSocket, and is still to be answered.
  std::weak_ptr<WebSocket> Relay(Exchange& exchange, RelayTarget target);

  std::size_t connections() const;                      // open now
  std::uint16_t port() const { return port_; }          // 0 without a loopback port
  std::uint16_t tcp_port() const { return tcp_port_; }  // 0 without `tcp`

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  Result<void> Open();

  std::unique_ptr<Impl> impl_;
  std::uint16_t port_ = 0;
  std::uint16_t tcp_port_ = 0;
};

}  // namespace muster::net

// HttpServer: HTTP/1.1 on a Unix socket, on a loopback port, or on both; what it means is the
// handler's business.
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

#include "base/result.h"
#include "net/http.h"

namespace muster::net {

inline constexpr std::size_t kMostQueuedBytes = std::size_t{8} << 20;

// One request that waits for its answer. Thread-safe; may outlive its connection and its server.
// Dropped without an answer it answers 500; dropped within a stream it cuts the connection, so
// that the reader knows the end is missing.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void Reply(Response response) = 0;  // the first answer counts, later ones are ignored
  virtual void BeginStream(int status, std::string content_type) = 0;
  // False: nothing of it was queued, because the peer has gone, the stream is over, or more than
  // kMostQueuedBytes would wait for a reader that does not read. In the last case it may be tried
  // again later. A chunk of any size is taken when nothing is queued.
  virtual bool Write(std::string chunk) = 0;
  virtual std::size_t Queued() const = 0;
  virtual void Finish() = 0;
  // The peer has closed its side. An answer is sent all the same, if it can be.
  virtual bool gone() const = 0;
};

using Handler = std::function<void(Request, std::shared_ptr<Exchange>)>;

struct ServerOptions {
  std::string unix_path;  // empty: no Unix socket
  std::uint32_t unix_mode = 0666;
  std::optional<std::uint16_t> loopback_port;  // on 127.0.0.1 only; 0: any free one
  std::size_t max_body_bytes = std::size_t{16} << 20;
  std::size_t max_header_bytes = std::size_t{64} << 10;  // 64 KiB is also the most
  // For a request to arrive, for an idle connection, and for a reader that does not read.
  int idle_timeout_ms = 60'000;
  int max_connections = 4096;
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Start(ServerOptions options, Handler handler);
  // Stops accepting, closes all connections, joins. Not from the server's own thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Both may be called from any thread and run the task on the server's; what is still waiting when
  // the server ends is dropped.
  void Post(std::function<void()> task);
  void After(int ms, std::function<void()> task);

  std::uint16_t port() const { return port_; }  // 0 without a loopback port

 private:
  struct Impl;
  HttpServer(std::unique_ptr<Impl> impl, std::uint16_t port);

  std::unique_ptr<Impl> impl_;
  std::uint16_t port_;
};

}  // namespace muster::net

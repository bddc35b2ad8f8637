// For the tests of this room: a folder for sockets, a server in it, and a client that sends bytes
// as they are, right or wrong.
//
// Reads have a time limit only so that a broken server fails a test instead of hanging it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/temp_folder.h"
#include "net/http_client.h"
#include "net/http_server.h"

namespace muster::net {

inline constexpr int kPatienceMs = 30'000;

class SocketFolder {
 public:
  std::string Path(const std::string& name = "s") const { return folder_ / name; }

 private:
  TempFolder folder_;
};

inline ServerOptions At(const std::string& path) {
  ServerOptions options;
  options.unix_path = path;
  return options;
}

inline std::unique_ptr<HttpServer> StartServer(ServerOptions options, Handler handler) {
  auto server = HttpServer::Start(std::move(options), std::move(handler));
  if (!server) ADD_FAILURE() << Describe(server.error());
  return server ? std::move(*server) : nullptr;
}

// Answers with what it was asked: "METHOD path body".
inline void Echo(Request request, const std::shared_ptr<Exchange>& exchange) {
  Response response;
  response.content_type = "text/plain";
  response.body = request.method + " " + request.path + " " + request.body;
  exchange->Reply(std::move(response));
}

class RawClient {
 public:
  explicit RawClient(Result<Fd> socket) {
    if (!socket) {
      ADD_FAILURE() << Describe(socket.error());
      return;
    }
    socket_ = std::move(*socket);
    SetSocketTimeout(socket_.get(), SO_RCVTIMEO, kPatienceMs);
  }

  // False when the server has closed the connection.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  void EndSending() { shutdown(socket_.get(), SHUT_WR); }
  void Close() { socket_.Close(); }
  int fd() const { return socket_.get(); }

  // Everything up to `mark`, or up to the end when it never comes; the rest is kept.
  std::string ReadUntil(std::string_view mark) {
    std::size_t found = std::string::npos;
    while ((found = input_.find(mark)) == std::string::npos && ReadMore()) {
    }
    const std::size_t size = found == std::string::npos ? input_.size() : found + mark.size();
    std::string out = input_.substr(0, size);
    input_.erase(0, size);
    return out;
  }

  // What has come since; empty at the end of the connection.
  std::string ReadSome() {
    if (input_.empty()) ReadMore();
    return std::exchange(input_, {});
  }

  // Everything up to the end of the connection.
  std::string ReadAll() {
    while (ReadMore()) {
    }
    return std::exchange(input_, {});
  }

 private:
  bool ReadMore() {
    std::string block(4096, '\0');
    const ssize_t got = recv(socket_.get(), block.data(), block.size(), 0);
    if (got < 0 && errno != ECONNRESET) ADD_FAILURE() << "neither an answer nor an end";
    if (got > 0) input_.append(block, 0, static_cast<std::size_t>(got));
    return got > 0;
  }

  Fd socket_;
  std::string input_;
};

inline RawClient RawUnix(const std::string& path) {
  return RawClient(ConnectUnix(path, kPatienceMs));
}

}  // namespace muster::net

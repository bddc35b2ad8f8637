// Client: calls of our own API, with errors as ours.
//
// One connection for the life of the object. An answer that says that something went wrong becomes
// the Error that the daemon meant, code and hint included, so that a command ends with the same
// status wherever the fault was found. The token goes to the server it was given with, and nowhere
// else. Whoever follows something may have it persist: a daemon that answered before and does not
// now is asked again, for it may be on its way back from a restart.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::net {
class WsClient;
}

namespace muster::client {

// Where the daemon of this machine listens by default.
std::string DefaultSocket();

struct Target {
  std::string server;   // /path, unix:/path, https://host:port, or http://host:port of this machine
  std::string token{};  // empty: none is sent
  std::string ca{};     // PEM file, trusted beside the system's roots
  int timeout_ms = 60'000;

  bool local() const { return server.find("://") == std::string::npos; }
};

struct Patience {
  int for_ms = 60'000;  // from the last answer that did not come
  bool known = false;   // it has answered another client of ours already
  std::function<void(int left_ms)> on_wait{};
  std::function<void()> on_back{};
};

class Client {
 public:
  explicit Client(const Target& target);
  ~Client();

  // From the first answer on, what only reads is asked again while the daemon does not answer.
  void Persist(Patience patience);

  using Query = std::map<std::string, std::string>;
  struct Answer {
    std::string body;
    std::string tag;  // ETag, where there is one
  };
  struct Extra {
    std::string if_match{};
    std::string idempotency_key{};
  };

  Result<Answer> Call(const char* method, const std::string& path, const Query& query,
                      const std::string& body, const Extra& extra);
  Result<std::string> Get(const std::string& path, const Query& query = {});
  Result<std::string> Post(const std::string& path, const Query& query, const std::string& body,
                           const std::string& idempotency_key = {});
  Result<std::string> Delete(const std::string& path, const Query& query = {});
  // A WebSocket; for Tunnel. Persists too: whoever wants that attaches, and starts nothing.
  Result<std::unique_ptr<net::WsClient>> Open(const std::string& path, const Query& query);
  Result<void> Stream(const std::string& path, const Query& query,
                      const std::function<bool(std::string_view)>& on_bytes);
  // The log of a worker as it is written, across restarts of the daemon: no byte is missing, none
  // comes twice. `on_bytes` returns false to stop.
  Result<void> FollowLog(const std::string& path, Query query,
                         const std::function<bool(std::string_view)>& on_bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client

// Client: calls of our own API, with errors as ours.
//
// One connection for the life of the object. An answer that says that something went wrong becomes
// the Error that the daemon meant, code and hint included, so that a command ends with the same
// status wherever the fault was found.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::client {

// $MUSTER_DAEMON, else where the daemon listens by default.
std::string DefaultSocket();

class Client {
 public:
  explicit Client(std::string socket);
  ~Client();

  using Query = std::map<std::string, std::string>;
  Result<std::string> Get(const std::string& path, const Query& query = {});
  Result<std::string> Post(const std::string& path, const Query& query, const std::string& body,
                           const std::string& idempotency_key = {});
  Result<void> Stream(const std::string& path, const Query& query,
                      const std::function<bool(std::string_view)>& on_bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client

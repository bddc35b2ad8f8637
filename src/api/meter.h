// Meter: what the API answered and how long that took, by operation.
//
// An exchange that is handed out metered notes its first answer, its beginning as a stream or as a
// WebSocket, or that nobody answered. There is one row for each operation of the OpenAPI document
// and one for what was none, so that no client can make the figures grow. Thread-safe; an exchange
// may outlive the API and holds on to the meter. Costs an allocation and two short locks a request.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/histogram.h"
#include "net/http_server.h"

namespace muster::api {

class Meter : public std::enable_shared_from_this<Meter> {
 public:
  struct Row {
    std::uint64_t requests = 0;
    std::array<std::uint64_t, 6> answers{};  // by the first digit of the status
    Histogram took;
  };

  explicit Meter(Clock& clock) : clock_(clock) {}

  // `operation` empty: none.
  std::shared_ptr<net::Exchange> Watch(std::shared_ptr<net::Exchange> exchange,
                                       const std::string& operation);
  // By the server itself, before it was anybody's request: counted with those that are no
  // operation.
  void Refused(int status);
  std::map<std::string, Row> Rows() const;
  std::int64_t streams() const { return streams_; }
  std::int64_t sockets() const { return sockets_; }  // WebSockets since the start

 private:
  class Metered;
  void Answered(const std::string& operation, int status, std::int64_t begun_ns);
  void Dropped(const std::string& operation);

  Clock& clock_;
  std::atomic<std::int64_t> streams_ = 0;
  std::atomic<std::int64_t> sockets_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Row> rows_;  // guarded by mutex_
};

}  // namespace muster::api

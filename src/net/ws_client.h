// WsClient: one WebSocket to a daemon, for a program with one thread that also watches a terminal.
//
// Connecting blocks, nothing else does: Send queues what the socket does not take, Receive returns
// what has come. The caller polls fd() for events(), and calls Receive until it has nothing before
// it polls again. Whoever sends stops to do so while Queued() is large and goes on receiving, or
// both ends may wait for each other for ever. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/dial.h"
#include "net/http.h"
#include "net/ws_frame.h"

namespace muster::net {

class WsClient {
 public:
  struct Answer;
  // The request's path, query and headers count. timeout_ms is for the whole of it; 0: none.
  static Result<Answer> Connect(const Endpoint& endpoint, Request request, int timeout_ms);

  // Sends it as binary. False: nothing of it was queued, because the WebSocket is closed or more
  // than kMostQueuedBytes would wait.
  bool Send(std::string_view message);
  // After all that was sent; then Receive until it says that the WebSocket is closed.
  void Close(int code, std::string_view reason);

  struct Incoming {
    std::string bytes{};  // a message, or the reason for closing
    bool closed = false;  // and nothing comes any more
    int code = 0;
  };
  // Sends what waits, answers pings. Nothing: wait for fd(). An error: the connection is lost.
  Result<std::optional<Incoming>> Receive();

  int fd() const { return line_.socket.get(); }
  short events() const;             // as for poll()
  bool Wait(int timeout_ms) const;  // polls just this one; false: nothing in that time
  std::size_t Queued() const { return output_.size() - sent_; }

 private:
  WsClient(Line line, std::string ahead, std::string where);

  void Queue(WsOp op, std::string_view payload);
  void Flush();
  std::optional<Incoming> OnEvent(WsEvent event);
  tl::unexpected<Error> Lost(const std::string& how) const;

  Line line_;
  std::string where_;  // for messages
  WsReader reader_;
  std::string input_;
  std::size_t parsed_ = 0;  // of input_
  std::string output_;
  std::size_t sent_ = 0;  // of output_
  bool closing_ = false;
  bool broken_ = false;  // nothing can be sent any more
  std::optional<Incoming> last_;
};

struct WsClient::Answer {
  std::unique_ptr<WsClient> socket{};  // null: the daemon answered otherwise
  Response refusal{};
};

}  // namespace muster::net

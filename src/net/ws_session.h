// WsSession: a WebSocket's inside, on the server.
//
// As with an answer, frames come from any thread and the socket belongs to the server's: between
// them lies the WsOutbox, which holds frames ready to be sent and the wish to pause. The session
// itself is the connection's alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "net/websocket.h"
#include "net/ws_frame.h"

namespace muster::net {

class WsOutbox {
 public:
  explicit WsOutbox(bool paused) : paused_(paused) {}

  // These return whether the connection has to be woken.
  struct Added {
    bool taken = false;
    bool wake = false;
  };
  Added Send(WsOp op, std::string_view payload);
  bool Close(int code, std::string_view reason);
  bool Resume() { return paused_.exchange(false); }
  void Pause() { paused_ = true; }

  // For the connection.
  void Take(std::string& into);  // `into` is empty before
  void Sent(std::size_t bytes) { queued_ -= bytes; }
  void MarkGone() { gone_ = true; }

  bool holds() const { return paused_ && !closing_; }  // messages are to wait
  bool gone() const { return gone_; }
  std::size_t queued() const { return queued_; }
  bool closing() const { return closing_; }  // a close is queued or sent

 private:
  bool Wake();  // with the lock held

  std::atomic<std::size_t> queued_{0};  // bytes of frames that the kernel has not taken yet
  std::atomic<bool> gone_{false};
  std::atomic<bool> paused_;
  std::atomic<bool> closing_{false};
  std::mutex mutex_;  // guards the rest
  bool wake_pending_ = false;
  std::string bytes_;
};

struct WsSession {
  WsSession(WebSocketHandlers given, std::size_t most)
      : handlers(std::move(given)),
        outbox(std::make_shared<WsOutbox>(handlers.paused)),
        reader(true, most) {}

  WebSocketHandlers handlers;
  std::shared_ptr<WsOutbox> outbox;
  WsReader reader;
  std::int64_t heard_ms = 0;    // from the peer
  std::int64_t pinged_ms = 0;   // since then; 0: not
  std::int64_t closing_ms = 0;  // when our close was first noticed; 0: not
  bool heard_close = false;
  bool told = false;  // on_closed is on its way
  int code = kWsLost;
  std::string reason{};
};

}  // namespace muster::net

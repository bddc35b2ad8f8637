// WebSocket: a connection that has left HTTP behind, for terminals and forwarded ports.
//
// Messages of any size up to a bound come and go whole. Handlers run on the server's thread and
// must not block; the rest may be called from any thread. What waits for a peer that does not read
// is bounded by kMostQueuedBytes, what waits for a handler that cannot keep up by Pause().
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace muster::net {

struct WebSocketHandlers {
  std::function<void(std::string message)> on_message{};  // text and binary alike
  // Once, and the last; 1006 when the connection was lost. Not when the server itself ends.
  std::function<void(int code, std::string reason)> on_closed{};
  std::function<void()> on_drained{};  // nothing is queued any more
  bool paused = false;                 // begins without reading
};

// Dropped by all who hold it, it is closed with 1001.
class WebSocket {
 public:
  virtual ~WebSocket() = default;
  // Sends it as binary. False: nothing of it was queued, because the peer has gone, Close() was
  // called, or more than kMostQueuedBytes would wait. A message of any size is taken when nothing
  // is queued.
  virtual bool Send(std::string message) = 0;
  // After all that was sent. The first one counts. The reason is cut after 123 bytes.
  virtual void Close(int code, std::string reason) = 0;
  // No on_message after the present one until Resume(); the peer feels it once buffers are full.
  virtual void Pause() = 0;
  virtual void Resume() = 0;
  virtual std::size_t Queued() const = 0;
  virtual bool gone() const = 0;  // the connection is closed
};

}  // namespace muster::net

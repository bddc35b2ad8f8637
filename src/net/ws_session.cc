#include "net/ws_session.h"

#include <utility>

#include "net/http_server.h"

namespace muster::net {

bool WsOutbox::Wake() { return !std::exchange(wake_pending_, true); }

WsOutbox::Added WsOutbox::Send(WsOp op, std::string_view payload) {
  const std::lock_guard lock(mutex_);
  if (closing_ || gone_) return {};
  const std::size_t queued = queued_;
  if (queued > 0 && queued + payload.size() > kMostQueuedBytes) return {};
  const std::size_t before = bytes_.size();
  AppendFrame(bytes_, op, payload);
  queued_ += bytes_.size() - before;
  return {.taken = true, .wake = Wake()};
}

bool WsOutbox::Close(int code, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (closing_ || gone_) return false;
  closing_ = true;
  const std::size_t before = bytes_.size();
  AppendClose(bytes_, code, reason);
  queued_ += bytes_.size() - before;
  return Wake();
}

void WsOutbox::Take(std::string& into) {
  const std::lock_guard lock(mutex_);
  wake_pending_ = false;
  std::swap(into, bytes_);
  bytes_.clear();
}

}  // namespace muster::net

// The part of a connection that begins when it becomes a WebSocket.
#include <boost/asio/post.hpp>
#include <utility>

#include "net/connection.h"

namespace muster::net {

void Connection::Upgrade() {
  ws_ = outbox_->TakeSession();
  outbox_.reset();
  since_ms_ = ws_->heard_ms = hall_.NowMs();
  AwaitInput();
  if (!parsing_ && input_.empty() && !ended_) return;
  // Posted: whoever upgrades may not be ready for messages before it has returned.
  boost::asio::post(hall_.context, [self = shared_from_this()] {
    if (self->closed_) return;
    self->ReadFrames({});
    if (self->ended_) self->Close();
  });
}

void Connection::Wake() {
  Flush();
  if (closed_ || !ws_ || ws_->outbox->holds() || draining_) return;
  if (!awaits_input_) ws_->heard_ms = hall_.NowMs();  // we did not listen
  AwaitInput();
  if (parsing_ || input_.empty()) return;
  boost::asio::post(hall_.context, [self = shared_from_this()] {
    if (!self->closed_ && !self->draining_) self->ReadFrames({});
  });
}

// Calls handlers, so never from Flush, which they may have called.
void Connection::ReadFrames(std::string_view fresh) {
  const auto ws = ws_;
  const bool kept = !input_.empty();
  if (kept) input_.append(fresh);
  std::string_view rest = kept ? std::string_view(input_) : fresh;
  if (!fresh.empty()) {
    ws->heard_ms = hall_.NowMs();
    ws->pinged_ms = 0;
  }
  parsing_ = true;
  while (!closed_ && !ws->heard_close && !ws->outbox->holds()) {
    auto event = ws->reader.Next(rest);
    if (!event) break;
    OnFrame(std::move(*event));
  }
  parsing_ = false;
  if (ws->heard_close || ws->reader.failure() != 0) rest = {};
  if (kept) {
    input_.erase(0, input_.size() - rest.size());
  } else {
    input_.assign(rest);
  }
  if (input_.empty()) input_.shrink_to_fit();
  if (const int code = ws->reader.failure(); code != 0 && !ws->heard_close && !closed_) {
    // Nothing that comes behind it can be understood.
    ws->heard_close = true;
    ws->code = code;
    ws->outbox->Close(code, "");
    TellClosed();
    Flush();
  }
}

void Connection::OnFrame(WsEvent event) {
  const auto ws = ws_;
  switch (event.op) {
    case WsOp::kPing:
      ws->outbox->Send(WsOp::kPong, event.payload);  // not when the peer does not read
      return Flush();
    case WsOp::kPong:
      return;
    case WsOp::kClose:
      ws->heard_close = true;
      ws->code = event.code;
      ws->reason = std::move(event.payload);
      ws->outbox->Close(event.code, "");
      TellClosed();
      return Flush();
    default:
      if (!ws->outbox->closing() && ws->handlers.on_message) {
        ws->handlers.on_message(std::move(event.payload));
      }
  }
}

void Connection::AfterFrames(bool sent) {
  if (ws_->outbox->queued() > 0) return;
  if (ws_->heard_close && ws_->outbox->closing()) last_ = true;
  if (!sent || !ws_->handlers.on_drained || ws_->told) return;
  boost::asio::post(hall_.context, [ws = ws_] {
    if (!ws->told) ws->handlers.on_drained();
  });
}

void Connection::TickFrames(std::int64_t now_ms) {
  const auto ws = ws_;
  const auto& options = hall_.options;
  const bool stuck = written_ < output_.size();
  if (stuck && now_ms - since_ms_ > options.idle_timeout_ms) return Close();
  if (ws->outbox->closing()) {
    if (ws->closing_ms == 0) ws->closing_ms = now_ms;
    if (!stuck && now_ms - ws->closing_ms > options.handshake_timeout_ms) return Close();
    return;
  }
  if (ws->outbox->holds()) return;
  if (ws->pinged_ms != 0) {
    if (now_ms - ws->pinged_ms > options.ping_interval_ms) Close();
  } else if (now_ms - ws->heard_ms > options.ping_interval_ms) {
    ws->pinged_ms = now_ms;
    ws->outbox->Send(WsOp::kPing, "");
    Flush();
  }
}

void Connection::TellClosed() {
  if (!ws_ || std::exchange(ws_->told, true)) return;
  ws_->outbox->MarkGone();
  // Posted: this may be within Send, and the handler's locks with it.
  boost::asio::post(hall_.context, [ws = ws_] {
    if (ws->handlers.on_closed) ws->handlers.on_closed(ws->code, ws->reason);
    ws->handlers = {};
  });
}

}  // namespace muster::net

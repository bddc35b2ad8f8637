// How a connection ends: by itself, because too much waits for it, or with the server.
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "net/connection.h"

namespace muster::net {
namespace {

// From the peer with the most, so that nobody loses an answer for another's sake.
void CutUnsent(Hall& hall) {
  while (hall.unsent_bytes > hall.options.max_unsent_bytes) {
    std::unordered_map<std::string_view, std::size_t> of_peer;
    for (const auto& [id, one] : hall.connections) of_peer[one->peer_key()] += one->unsent();
    std::shared_ptr<Connection> worst;
    std::size_t with = 0;
    for (const auto& [id, one] : hall.connections) {
      if (one->unsent() == 0) continue;
      ++with;
      const auto rank = [&](const Connection& of) {
        return std::pair(of_peer[of.peer_key()], of.unsent());
      };
      if (!worst || rank(*one) > rank(*worst)) worst = one;
    }
    if (with < 2) break;
    worst->Close();
  }
  hall.cutting = false;
}

}  // namespace

void Connection::CountUnsent() {
  const auto now = closed_   ? 0
                   : outbox_ ? outbox_->queued()
                   : ws_     ? ws_->outbox->queued()
                             : output_.size() - written_;
  hall_.unsent_bytes = hall_.unsent_bytes - unsent_ + now;
  unsent_ = now;
  if (hall_.unsent_bytes <= hall_.options.max_unsent_bytes) return;
  // Posted: this one may be the one.
  if (std::exchange(hall_.cutting, true)) return;
  boost::asio::post(hall_.context, [&hall = hall_] { CutUnsent(hall); });
}

// Closing with input unread would reset the connection, and the peer might lose our last answer.
void Connection::ShutDown() {
  if (ended_) return Close();
  draining_ = true;
  since_ms_ = hall_.NowMs();
  wire_.EndWriting();
  if (hall_.ending && !HasInput()) return Close();
  AwaitInput();
}

bool Connection::HasInput() {
  char first = 0;
  return recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void Connection::Leave() {
  if (closed_) return;
  if (draining_ || stage_ != Stage::kTalking) return HasInput() ? void() : Close();
  if (!outbox_ && !ws_ && !last_ && HasInput()) OnReadable();  // what came in time is answered
  if (closed_ || last_) return;
  if (ws_) {
    ws_->outbox->Close(kWsGoingAway, "the server is stopping");
    return Flush();
  }
  if (outbox_) {
    outbox_->Leave();
    return Flush();
  }
  if (arriving_) return Refuse(503, "the server is stopping", {{"Retry-After", "1"}});
  Close();
}

void Connection::Close() {
  if (std::exchange(closed_, true)) return;
  CountUnsent();
  if (outbox_) {
    outbox_->MarkGone();
    ws_ = outbox_->TakeSession();  // if it was to become one in this moment
    outbox_.reset();
  }
  TellClosed();
  DropBody();
  if (!caller_.key.empty()) hall_.peers.Leave(caller_.key);
  boost::system::error_code ignored;
  socket_.close(ignored);
  hall_.connections.erase(id_);  // callers hold a reference of their own
  hall_.open = hall_.connections.size();
  if (hall_.ending && hall_.connections.empty()) hall_.context.stop();
}

}  // namespace muster::net

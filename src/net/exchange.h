// Exchange's inside: what is on its way from whoever answers to the connection's thread.
//
// An answer may come from any thread, a socket belongs to the server's. Between them lies the
// Outbox: bytes already in the form of HTTP, so that the connection only moves them. Writers never
// overtake each other, because the bytes are queued under its lock and the connection takes all
// there are; a wake-up says only that there are some. It holds no socket, so the last one to let
// go of it may be any thread, even after the server is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "net/ws_session.h"

namespace muster::net {

// What the server says by itself. Shared with exchanges, which may outlive it.
struct Manners {
  std::function<Response(int status, const std::string& why)> refusal{};
  std::atomic<bool> leaving{false};
};

Response MakeRefusal(const Manners& manners, int status, const std::string& why,
                     std::vector<Header> headers = {});
// To whatever is asked, or not answered yet, when the server ends.
Response Goodbye(const Manners& manners);

// How an answer must be written, as its request asked for it.
struct Framing {
  bool keep_alive = true;
  bool chunked = true;            // HTTP/1.0 knows no chunks: a stream ends with its connection
  bool head = false;              // the answer to HEAD has no body
  std::string key{};              // of a request for a WebSocket; empty: it is not one
  std::size_t message_bytes = 0;  // the most in one message
};

// A whole answer, head and body.
std::string Frame(const Response& response, const Framing& framing);

class Outbox {
 public:
  // What follows the last byte: the next request, an orderly close, a cut, or frames.
  enum class End { kOpen, kKeep, kClose, kAborted, kUpgraded };

  explicit Outbox(Framing framing,
                  std::shared_ptr<const Manners> manners = std::make_shared<Manners>())
      : framing_(std::move(framing)), manners_(std::move(manners)) {}
  const Framing& framing() const { return framing_; }

  // For those who answer. They return whether the connection has to be woken.
  bool Reply(const Response& response);  // the first answer counts
  bool BeginStream(int status, const std::string& content_type,
                   const std::vector<Header>& headers = {});
  struct Added {
    bool taken = false;
    bool wake = false;
  };
  void SetEndless() { endless_ = true; }
  Added Write(std::string_view chunk);
  bool Finish();
  struct Upgraded {
    std::shared_ptr<WsOutbox> frames{};  // null: not asked for, answered already, or gone
    bool wake = false;
  };
  Upgraded Upgrade(WebSocketHandlers handlers);
  bool Abandon();  // nobody will answer any more

  // For the connection.
  End Take(std::string& into);  // `into` is empty before; what ends is behind the bytes taken
  void Sent(std::size_t bytes);
  void MarkGone() { gone_ = true; }
  void Leave();  // the server ends: answers what waits, ends what is endless
  // After the upgrade; null when there was none. After MarkGone() there will be none.
  std::unique_ptr<WsSession> TakeSession();

  std::size_t queued() const { return queued_; }
  bool gone() const { return gone_; }
  bool over();

 private:
  enum class State { kWaiting, kStreaming, kDone };

  bool Wake();  // with the lock held

  const Framing framing_;
  const std::shared_ptr<const Manners> manners_;
  std::atomic<bool> endless_{false};
  std::atomic<std::size_t> queued_{0};  // framed bytes that the kernel has not taken yet
  std::atomic<bool> gone_{false};
  std::mutex mutex_;  // guards the rest
  State state_ = State::kWaiting;
  End end_ = End::kOpen;
  bool wake_pending_ = false;
  std::string bytes_;
  std::unique_ptr<WsSession> session_;
};

class Waker {
 public:
  virtual ~Waker() = default;
  virtual void Wake(std::uint64_t connection) = 0;
};

class WireExchange final : public Exchange {
 public:
  WireExchange(std::shared_ptr<Outbox> outbox, std::shared_ptr<Waker> waker,
               std::uint64_t connection);
  ~WireExchange() override;
  WireExchange(const WireExchange&) = delete;
  WireExchange& operator=(const WireExchange&) = delete;

  void Reply(Response response) override;
  void BeginStream(int status, std::string content_type, std::vector<Header> headers) override;
  void SetEndless() override { outbox_->SetEndless(); }
  bool Write(std::string chunk) override;
  std::size_t Queued() const override { return outbox_->queued(); }
  void Finish() override;
  void Abort() override { WakeIf(outbox_->Abandon()); }
  bool gone() const override { return outbox_->gone(); }
  bool over() const override { return outbox_->over(); }
  std::shared_ptr<WebSocket> Upgrade(WebSocketHandlers handlers) override;

 private:
  void WakeIf(bool needed);

  std::shared_ptr<Outbox> outbox_;
  std::shared_ptr<Waker> waker_;
  std::uint64_t connection_;
};

}  // namespace muster::net

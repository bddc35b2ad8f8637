#include "net/relay.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "net/sockets.h"
#include "net/ws_frame.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kMostHeld = std::size_t{256} << 10;  // in each direction, and one read more
constexpr auto kPatience = std::chrono::seconds(10);

class Joint : public std::enable_shared_from_this<Joint> {
 public:
  Joint(asio::io_context& context, RelayTarget target)
      : descriptor_(context),
        timer_(context),
        target_(std::move(target)),
        to_target_(std::move(target_.first_bytes)) {}

  WebSocketHandlers Handlers();
  void Begin(std::shared_ptr<WebSocket> socket);

 private:
  void AwaitConnected();
  void Connected();
  void Unreachable(const std::string& why);
  void OnMessage(const std::string& message);
  void FlushTarget();
  void AwaitTarget();
  void ReadTarget();
  void OnClosed();
  void End();

  Descriptor descriptor_;
  asio::steady_timer timer_;
  RelayTarget target_;
  std::shared_ptr<WebSocket> socket_;
  std::string to_target_;
  std::size_t sent_ = 0;  // of to_target_
  bool connected_ = false;
  bool reads_ = false;    // the descriptor is being watched for input
  bool writes_ = false;   // for room
  bool no_more_ = false;  // the client has ended the target's input
  bool deaf_ = false;     // the target takes nothing any more
  bool client_gone_ = false;
  bool ended_ = false;
};

WebSocketHandlers Joint::Handlers() {
  const auto self = shared_from_this();
  return {.on_message = [self](const std::string& message) { self->OnMessage(message); },
          .on_closed = [self](int, const std::string&) { self->OnClosed(); },
          .on_drained = [self] { self->AwaitTarget(); },
          .paused = true};
}

void Joint::Begin(std::shared_ptr<WebSocket> socket) {
  if (ended_) return;  // the client was quicker
  socket_ = std::move(socket);
  auto opened = target_.unix_path.empty()
                    ? BeginConnectLoopback(target_.loopback_port, target_.loopback_v6)
                    : BeginConnectUnix(target_.unix_path);
  if (!opened) return Unreachable(opened.error().message);
  error_code error;
  descriptor_.assign(opened->get(), error);
  if (error) return Unreachable(error.message());
  opened->Release();
  AwaitConnected();
}

void Joint::AwaitConnected() {
  timer_.expires_after(kPatience);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error && !self->connected_) self->Unreachable("cannot reach the target in time");
  });
  descriptor_.async_wait(Descriptor::wait_write, [self = shared_from_this()](error_code error) {
    if (!error && !self->ended_) self->Connected();
  });
}

void Joint::Connected() {
  int reason = 0;
  socklen_t size = sizeof(reason);
  getsockopt(descriptor_.native_handle(), SOL_SOCKET, SO_ERROR, &reason, &size);
  if (reason != 0) {
    return Unreachable(std::string("cannot reach the target: ") + std::strerror(reason));
  }
  connected_ = true;
  timer_.cancel();
  socket_->Resume();
  FlushTarget();
  AwaitTarget();
}

void Joint::Unreachable(const std::string& why) {
  if (ended_) return;
  to_target_.clear();
  socket_->Close(kWsInternal, why);
  End();
}

void Joint::OnMessage(const std::string& message) {
  if (ended_ || no_more_) return;
  if (message.empty()) {
    no_more_ = true;
  } else if (!deaf_) {
    to_target_ += message;
  }
  FlushTarget();
  if (to_target_.size() - sent_ > kMostHeld) socket_->Pause();
}

void Joint::FlushTarget() {
  if (ended_ || writes_ || !connected_) return;
  while (sent_ < to_target_.size()) {
    const ssize_t sent = send(descriptor_.native_handle(), to_target_.data() + sent_,
                              to_target_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      sent_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      writes_ = true;
      descriptor_.async_wait(Descriptor::wait_write, [self = shared_from_this()](error_code error) {
        self->writes_ = false;
        if (!error) self->FlushTarget();
      });
      break;
    } else if (errno != EINTR) {
      deaf_ = true;  // what it has still to say comes before its end
      sent_ = to_target_.size();
    }
  }
  if (sent_ == to_target_.size() || sent_ > kMostHeld) {
    to_target_.erase(0, sent_);
    sent_ = 0;
  }
  if (writes_) return;
  if (client_gone_) return End();
  if (no_more_) shutdown(descriptor_.native_handle(), SHUT_WR);
  socket_->Resume();
}

void Joint::AwaitTarget() {
  if (ended_ || reads_ || client_gone_ || !connected_ || socket_->Queued() > kMostHeld) return;
  reads_ = true;
  descriptor_.async_wait(Descriptor::wait_read, [self = shared_from_this()](error_code error) {
    self->reads_ = false;
    if (!error && !self->ended_ && !self->client_gone_) self->ReadTarget();
  });
}

void Joint::ReadTarget() {
  std::array<char, kReadBytes> block;
  const ssize_t got = recv(descriptor_.native_handle(), block.data(), block.size(), MSG_DONTWAIT);
  if (got > 0) {
    socket_->Send(std::string(block.data(), static_cast<std::size_t>(got)));
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    socket_->Close(kWsNormal, "");
    return End();
  }
  AwaitTarget();
}

void Joint::OnClosed() {
  client_gone_ = true;
  if (ended_) return;
  if (!connected_ || sent_ == to_target_.size()) return End();
  timer_.expires_after(kPatience);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->End();
  });
  FlushTarget();
}

void Joint::End() {
  if (std::exchange(ended_, true)) return;
  error_code ignored;
  descriptor_.close(ignored);
  timer_.cancel();
  socket_.reset();
  to_target_ = {};
  if (target_.on_closed) std::exchange(target_.on_closed, nullptr)();
}

}  // namespace

std::weak_ptr<WebSocket> StartRelay(asio::io_context& context, Exchange& exchange,
                                    RelayTarget target) {
  const auto joint = std::make_shared<Joint>(context, std::move(target));
  auto socket = exchange.Upgrade(joint->Handlers());
  if (!socket) return {};
  asio::post(context, [joint, socket] { joint->Begin(socket); });
  return socket;
}

}  // namespace muster::net

#include "net/ws_client.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "net/base64.h"
#include "net/http_client.h"
#include "net/http_server.h"

namespace muster::net {
namespace {

constexpr std::size_t kMostMessageBytes = std::size_t{64} << 20;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

// Unpredictable, so that nobody can make us send bytes of their choice through an old proxy.
template <std::size_t kSize>
std::array<std::uint8_t, kSize> Nonce() {
  std::array<std::uint8_t, kSize> out{};
  MUSTER_CHECK(RAND_bytes(out.data(), static_cast<int>(kSize)) == 1, "the system has random bytes");
  return out;
}

std::string NewKey() {
  const auto nonce = Nonce<16>();
  return ToBase64({reinterpret_cast<const char*>(nonce.data()), nonce.size()});
}

}  // namespace

Result<WsClient::Answer> WsClient::Connect(const Endpoint& endpoint, Request request,
                                           int timeout_ms) {
  const auto key = NewKey();
  request.method = "GET";
  for (auto& header : std::vector<Header>{{"Connection", "Upgrade"},
                                          {"Upgrade", "websocket"},
                                          {"Sec-WebSocket-Version", "13"},
                                          {"Sec-WebSocket-Key", key}}) {
    request.headers.push_back(std::move(header));
  }
  HttpClient http(endpoint);
  auto switched = http.Switch(request, timeout_ms);
  if (!switched) return tl::unexpected(switched.error());
  if (switched->response.status != 101) return Answer{.refusal = std::move(switched->response)};
  const auto* const accept = switched->response.Find("Sec-WebSocket-Accept");
  if (accept == nullptr || *accept != WsAccept(key)) {
    return Fail(ErrorCode::kUnavailable, Describe(endpoint) + " does not speak WebSocket",
                "check the address");
  }
  const int socket = switched->line.socket.get();
  if (fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK) != 0) {
    return Fail(ErrorCode::kInternal, "the connection cannot be polled");
  }
  Answer out;
  out.socket.reset(
      new WsClient(std::move(switched->line), std::move(switched->ahead), Describe(endpoint)));
  return out;
}

WsClient::WsClient(Line line, std::string ahead, std::string where)
    : line_(std::move(line)),
      where_(std::move(where)),
      reader_(false, kMostMessageBytes),
      input_(std::move(ahead)) {}

tl::unexpected<Error> WsClient::Lost(const std::string& how) const {
  return Fail(ErrorCode::kUnavailable, where_ + " " + how, "connect again");
}

void WsClient::Queue(WsOp op, std::string_view payload) {
  const auto mask = Nonce<4>();
  AppendFrame(output_, op, payload, &mask);
  Flush();
}

bool WsClient::Send(std::string_view message) {
  if (closing_ || broken_) return false;
  if (Queued() > 0 && Queued() + message.size() > kMostQueuedBytes) return false;
  Queue(WsOp::kBinary, message);
  return true;
}

void WsClient::Close(int code, std::string_view reason) {
  if (std::exchange(closing_, true)) return;
  const auto mask = Nonce<4>();
  AppendClose(output_, code, reason, &mask);
  Flush();
}

void WsClient::Flush() {
  while (sent_ < output_.size() && !broken_) {
    const auto sent = line_.wire.Write(std::string_view(output_).substr(sent_));
    if (sent.state == Wire::State::kMoved) {
      sent_ += sent.bytes;
    } else if (sent.state == Wire::State::kWantWrite) {
      break;
    } else {
      broken_ = true;  // why, the reading side may still learn
    }
  }
  // Moving the rest forward costs less than its bytes did.
  if (broken_ || sent_ > output_.size() / 2) {
    output_.erase(0, broken_ ? output_.size() : sent_);
    sent_ = 0;
  }
}

std::optional<WsClient::Incoming> WsClient::OnEvent(WsEvent event) {
  switch (event.op) {
    case WsOp::kPing:
      if (!closing_ && Queued() < kMostQueuedBytes) Queue(WsOp::kPong, event.payload);
      return std::nullopt;
    case WsOp::kPong:
      return std::nullopt;
    case WsOp::kClose:
      Close(event.code, "");
      last_ = Incoming{.bytes = std::move(event.payload), .closed = true, .code = event.code};
      return last_;
    default:
      return Incoming{.bytes = std::move(event.payload)};
  }
}

Result<std::optional<WsClient::Incoming>> WsClient::Receive() {
  Flush();
  if (last_) return last_;
  for (;;) {
    auto rest = std::string_view(input_).substr(parsed_);
    auto event = reader_.Next(rest);
    parsed_ = input_.size() - rest.size();
    if (event) {
      if (auto incoming = OnEvent(std::move(*event))) return incoming;
      continue;
    }
    if (const int code = reader_.failure(); code != 0) {
      Close(code, "");
      return Lost("sent something that is not a WebSocket's frame");
    }
    input_.resize(kReadBytes);
    const auto got = line_.wire.Read(input_.data(), input_.size());
    input_.resize(got.bytes);
    parsed_ = 0;
    if (got.state == Wire::State::kWantRead || got.state == Wire::State::kWantWrite) {
      return std::nullopt;
    }
    if (got.state != Wire::State::kMoved) return Lost("closed the connection");
  }
}

short WsClient::events() const {
  return static_cast<short>(Queued() > 0 ? POLLIN | POLLOUT : POLLIN);
}

bool WsClient::Wait(int timeout_ms) const {
  pollfd watched{.fd = fd(), .events = events(), .revents = 0};
  return poll(&watched, 1, timeout_ms) > 0;
}

}  // namespace muster::net

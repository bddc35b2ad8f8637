#include "net/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::net {
namespace {

std::string_view Phrase(int status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

// A line break in a value would begin a header, or an answer, of somebody else's making.
void AppendClean(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  AppendClean(out, name);
  out += ": ";
  AppendClean(out, value);
  out += "\r\n";
}

std::string Head(int status, std::string_view content_type, const Framing& framing) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", status, Phrase(status));
  if (!content_type.empty()) AppendHeader(out, "Content-Type", content_type);
  if (!framing.keep_alive) {
    AppendHeader(out, "Connection", "close");
  } else if (!framing.chunked) {
    AppendHeader(out, "Connection", "keep-alive");  // not understood by itself in HTTP/1.0
  }
  return out;
}

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

Framing ForStream(Framing framing) {
  if (!framing.chunked) framing.keep_alive = false;
  return framing;
}

}  // namespace

std::string Frame(const Response& response, const Framing& framing) {
  const bool has_body = HasBody(response.status);
  std::string out = Head(response.status, has_body ? response.content_type : "", framing);
  for (const auto& header : response.headers) AppendHeader(out, header.name, header.value);
  if (has_body)
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", response.body.size());
  out += "\r\n";
  if (has_body && !framing.head) out += response.body;
  return out;
}

Response MakeRefusal(const Manners& manners, int status, const std::string& why,
                     std::vector<Header> headers) {
  Response response{.status = status, .content_type = "text/plain", .body = why + "\n"};
  if (manners.refusal) response = manners.refusal(status, why);
  response.headers = std::move(headers);
  return response;
}

Response Goodbye(const Manners& manners) {
  return MakeRefusal(manners, 503, "the server is stopping", {{"Retry-After", "1"}});
}

bool Outbox::Wake() { return !std::exchange(wake_pending_, true); }

bool Outbox::Reply(const Response& response) {
  auto framed = Frame(response, framing_);  // outside the lock: bodies may be large
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting) return false;
  state_ = State::kDone;
  end_ = framing_.keep_alive ? End::kKeep : End::kClose;
  queued_ += framed.size();
  bytes_ = std::move(framed);
  return Wake();
}

bool Outbox::BeginStream(int status, const std::string& content_type,
                         const std::vector<Header>& headers) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting) return false;
  state_ = State::kStreaming;
  bytes_ = Head(status, content_type, ForStream(framing_));
  for (const auto& header : headers) AppendHeader(bytes_, header.name, header.value);
  if (framing_.chunked) bytes_ += "Transfer-Encoding: chunked\r\n";
  bytes_ += "\r\n";
  queued_ += bytes_.size();
  return Wake();
}

Outbox::Added Outbox::Write(std::string_view chunk) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming || gone_) return {};
  const std::size_t queued = queued_;
  if (queued > 0 && queued + chunk.size() > kMostQueuedBytes) return {};
  // An empty chunk would end the stream.
  if (chunk.empty() || framing_.head) return {.taken = true};
  const std::size_t before = bytes_.size();
  if (framing_.chunked) fmt::format_to(std::back_inserter(bytes_), "{:x}\r\n", chunk.size());
  bytes_ += chunk;
  if (framing_.chunked) bytes_ += "\r\n";
  queued_ += bytes_.size() - before;
  return {.taken = true, .wake = Wake()};
}

bool Outbox::Finish() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming) return false;
  state_ = State::kDone;
  end_ = ForStream(framing_).keep_alive ? End::kKeep : End::kClose;
  if (framing_.chunked && !framing_.head) {
    constexpr std::string_view kLast = "0\r\n\r\n";
    bytes_ += kLast;
    queued_ += kLast.size();
  }
  return Wake();
}

Outbox::Upgraded Outbox::Upgrade(WebSocketHandlers handlers) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting || framing_.key.empty() || gone_) return {};
  state_ = State::kDone;
  end_ = End::kUpgraded;
  session_ = std::make_unique<WsSession>(std::move(handlers), framing_.message_bytes);
  bytes_ = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
  AppendHeader(bytes_, "Sec-WebSocket-Accept", WsAccept(framing_.key));
  bytes_ += "\r\n";
  queued_ += bytes_.size();
  return {.frames = session_->outbox, .wake = Wake()};
}

std::unique_ptr<WsSession> Outbox::TakeSession() {
  const std::lock_guard lock(mutex_);
  return std::move(session_);
}

void Outbox::Leave() {
  if (endless_) Finish();
  Reply(Goodbye(*manners_));
}

bool Outbox::Abandon() {
  const bool leaving = manners_->leaving;
  if (leaving && endless_ && Finish()) return true;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kDone) return false;
    if (state_ == State::kStreaming) {
      // Without its last chunk the reader sees that the stream was cut.
      state_ = State::kDone;
      end_ = End::kAborted;
      return Wake();
    }
  }
  return Reply(leaving ? Goodbye(*manners_) : MakeRefusal(*manners_, 500, "no answer"));
}

Outbox::End Outbox::Take(std::string& into) {
  const std::lock_guard lock(mutex_);
  wake_pending_ = false;
  std::swap(into, bytes_);
  bytes_.clear();
  return end_;
}

bool Outbox::over() {
  const std::lock_guard lock(mutex_);
  return gone_ || state_ == State::kDone;
}

void Outbox::Sent(std::size_t bytes) {
  // The connection's own bytes, such as "100 Continue", were never counted.
  const std::lock_guard lock(mutex_);
  queued_ -= std::min<std::size_t>(bytes, queued_);
}

namespace {

class WireSocket final : public WebSocket {
 public:
  WireSocket(std::shared_ptr<WsOutbox> frames, std::shared_ptr<Waker> waker,
             std::uint64_t connection)
      : frames_(std::move(frames)), waker_(std::move(waker)), connection_(connection) {}
  ~WireSocket() override { WakeIf(frames_->Close(kWsGoingAway, "")); }
  WireSocket(const WireSocket&) = delete;
  WireSocket& operator=(const WireSocket&) = delete;

  bool Send(std::string message) override {
    const auto added = frames_->Send(WsOp::kBinary, message);
    WakeIf(added.wake);
    return added.taken;
  }
  void Close(int code, std::string reason) override { WakeIf(frames_->Close(code, reason)); }
  void Pause() override { frames_->Pause(); }
  void Resume() override { WakeIf(frames_->Resume()); }
  std::size_t Queued() const override { return frames_->queued(); }
  bool gone() const override { return frames_->gone(); }

 private:
  void WakeIf(bool needed) {
    if (needed) waker_->Wake(connection_);
  }

  std::shared_ptr<WsOutbox> frames_;
  std::shared_ptr<Waker> waker_;
  std::uint64_t connection_;
};

}  // namespace

WireExchange::WireExchange(std::shared_ptr<Outbox> outbox, std::shared_ptr<Waker> waker,
                           std::uint64_t connection)
    : outbox_(std::move(outbox)), waker_(std::move(waker)), connection_(connection) {}

WireExchange::~WireExchange() { WakeIf(outbox_->Abandon()); }

void WireExchange::WakeIf(bool needed) {
  if (needed) waker_->Wake(connection_);
}

void WireExchange::Reply(Response response) { WakeIf(outbox_->Reply(response)); }

void WireExchange::BeginStream(int status, std::string content_type, std::vector<Header> headers) {
  WakeIf(outbox_->BeginStream(status, content_type, headers));
}

bool WireExchange::Write(std::string chunk) {
  const auto added = outbox_->Write(chunk);
  WakeIf(added.wake);
  return added.taken;
}

std::shared_ptr<WebSocket> WireExchange::Upgrade(WebSocketHandlers handlers) {
  auto upgraded = outbox_->Upgrade(std::move(handlers));
  if (!upgraded.frames) return nullptr;
  auto out = std::make_shared<WireSocket>(std::move(upgraded.frames), waker_, connection_);
  WakeIf(upgraded.wake);
  return out;
}

void WireExchange::Finish() { WakeIf(outbox_->Finish()); }

}  // namespace muster::net

#include "net/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <utility>

#include "net/head.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Parser = http::request_parser<http::string_body>;

constexpr std::size_t kMostAheadBytes = std::size_t{64}
                                        << 10;  // of requests behind the present one
constexpr std::size_t kSmallBodyBytes = std::size_t{64} << 10;
constexpr std::size_t kMostDrainedBytes = std::size_t{64} << 20;
constexpr std::size_t kFlushBytes = std::size_t{1} << 20;  // then it is another connection's turn
constexpr int kDrainShare = 4;                             // of the idle timeout
constexpr char kClientHello = 0x16;

int StatusFor(error_code error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  return 400;
}

void TellRefused(const ServerOptions& options, int status) {
  if (options.on_refused) options.on_refused(status);
}

}  // namespace

struct Connection::Arriving {
  Parser parser{};
  Request request{};  // without its body, once the head is complete
  bool head_checked = false;
  std::optional<Response> refusal{};  // instead of the handler's answer
  std::size_t body_bytes = 0;         // as they came, with the marks between chunks
};

Connection::Connection(Hall& hall, std::uint64_t id, Descriptor socket, Caller caller,
                       std::shared_ptr<const TlsContext> tls)
    : hall_(hall),
      id_(id),
      socket_(std::move(socket)),
      wire_(socket_.native_handle()),
      caller_(std::move(caller)),
      tls_(std::move(tls)),
      stage_(tls_ ? Stage::kGreeting : Stage::kTalking),
      since_ms_(hall.NowMs()) {}

Connection::~Connection() = default;

void Connection::AwaitInput() {
  const bool ahead = outbox_ && input_.size() >= kMostAheadBytes;
  const bool paused = ws_ && ws_->outbox->holds() && !draining_;
  if (awaits_input_ || ended_ || closed_ || ahead || paused) return;
  awaits_input_ = true;
  socket_.async_wait(Descriptor::wait_read, [self = shared_from_this()](error_code error) {
    self->awaits_input_ = false;
    if (!error && !self->closed_) self->OnReadable();
  });
}

// A client that speaks HTTP to a port for TLS gets an answer that it can read.
bool Connection::Greet() {
  char first = 0;
  const ssize_t got = recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool hello = got > 0 && first == kClientHello;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    AwaitInput();
  } else if (got > 0 && !hello) {
    stage_ = Stage::kTalking;
    Refuse(400, "this port speaks TLS: use https://");
  } else if (!hello || !wire_.StartServer(std::exchange(tls_, nullptr))) {
    Close();
  } else {
    stage_ = Stage::kHandshake;
    return true;
  }
  return false;
}

void Connection::ShakeHands() {
  switch (wire_.Handshake().state) {
    case Wire::State::kMoved:
      stage_ = Stage::kTalking;
      since_ms_ = hall_.NowMs();
      return AwaitInput();
    case Wire::State::kWantRead:
      return AwaitInput();
    case Wire::State::kWantWrite:
      return AwaitOutput();
    default:
      return Close();
  }
}

void Connection::OnReadable() {
  if (stage_ == Stage::kGreeting && !Greet()) return;
  if (stage_ == Stage::kHandshake) return ShakeHands();
  auto& scratch = hall_.scratch;
  const auto got = wire_.Read(scratch.data(), scratch.size());
  switch (got.state) {
    case Wire::State::kFailed:
      return Close();
    case Wire::State::kEnd:
      return OnEnd();
    case Wire::State::kWantWrite:
      reads_when_writable_ = true;
      return AwaitOutput();
    case Wire::State::kWantRead:
      break;
    case Wire::State::kMoved:
      if (draining_) {
        drained_ += got.bytes;
        if (drained_ > kMostDrainedBytes) return Close();
      } else if (ws_) {
        ReadFrames(std::string_view(scratch.data(), got.bytes));
      } else {
        Process(std::string_view(scratch.data(), got.bytes));
      }
  }
  AwaitInput();
}

void Connection::OnEnd() {
  ended_ = true;
  if (draining_ || ws_) return Close();
  // Half-closed clients are common in scripts: they get the answers to what they sent.
  if (outbox_) return outbox_->MarkGone();
  Process({});
}

void Connection::Process(std::string_view fresh) {
  parsing_ = true;
  if (input_.empty()) {
    const auto used = Parse(fresh);
    input_.assign(fresh.substr(used));
  } else {
    input_.append(fresh);
    input_.erase(0, Parse(input_));
  }
  parsing_ = false;
  if (!outbox_ && !ws_ && ended_ && !last_) Close();
}

// Hands out requests until one is not answered at once; returns how much of `data` they took.
std::size_t Connection::Parse(std::string_view data) {
  std::size_t used = 0;
  while (!outbox_ && !ws_ && !last_ && !closed_ && used < data.size()) {
    if (!arriving_) {
      arriving_ = std::make_unique<Arriving>();
      arriving_->parser.header_limit(static_cast<std::uint32_t>(hall_.options.max_header_bytes));
      arriving_->parser.body_limit(boost::none);  // until the head says what it is for
      since_ms_ = hall_.NowMs();
    }
    auto& parser = arriving_->parser;
    error_code error;
    const auto rest = data.substr(used);
    const std::size_t taken = parser.put(asio::buffer(rest.data(), rest.size()), error);
    used += taken;
    if (error && error != http::error::need_more) {
      Refuse(StatusFor(error), error.message());
      break;
    }
    if (arriving_->head_checked) {
      arriving_->body_bytes += taken;
      if (!HoldBody()) break;
    } else if (parser.is_header_done()) {
      CheckHead();
      if (!arriving_) break;
    }
    if (parser.is_done()) {
      Dispatch();
    } else if (taken == 0) {
      break;
    }
  }
  return used;
}

void Connection::CheckHead() {
  auto& parser = arriving_->parser;
  const auto& message = parser.get();
  auto target = ParseTarget({message.target().data(), message.target().size()});
  if (!target) return Refuse(400, target.error().message);
  auto& request = arriving_->request;
  request = {.method = std::string(message.method_string()),
             .path = std::move(target->path),
             .query = std::move(target->query),
             .peer = caller_.peer,
             .remote = caller_.remote};
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  const bool is_tcp = !caller_.peer.has_value();
  HeadRules rules{.chunks = message.version() >= 11};
  if (is_tcp) rules.names = hall_.options.host_names;
  if (const auto refusal = Objection(request, rules)) return Refuse(refusal->status, refusal->why);
  const auto& options = hall_.options;
  const std::size_t most =
      options.body_limit ? options.body_limit(request) : options.max_body_bytes;
  if (parser.content_length().value_or(0) > most) {
    if (most == 0) return Refuse(400, "this call takes no body; parameters go into its query");
    return Refuse(413, "the body is larger than " + std::to_string(most) + " bytes");
  }
  if (TooFast()) return;
  parser.body_limit(most);
  parser.eager(true);
  arriving_->head_checked = true;
  since_ms_ = hall_.NowMs();
  if (!parser.is_done() && request.Find("Expect") != nullptr) {
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
    Flush();
  }
}

// Without a body to skip the connection is kept: a new one would cost us more than an answer.
bool Connection::TooFast() {
  const auto& options = hall_.options;
  const auto wait_ms = hall_.peers.Ask(
      caller_.key, caller_.peer ? options.unix_rate : options.tcp_rate, hall_.NowMs());
  if (wait_ms == 0) return false;
  const std::vector<Header> headers = {{"Retry-After", std::to_string((wait_ms + 999) / 1000)}};
  const std::string why = "too many requests, try again later";
  if (!arriving_->parser.is_done()) {
    Refuse(429, why, headers);
    return true;
  }
  arriving_->refusal = MakeRefusal(*hall_.manners, 429, why, headers);
  return false;
}

// Large bodies share a bounded part of memory. Who sends one slowly keeps other large ones out, at
// most half of them, and no small one.
bool Connection::HoldBody() {
  const auto bytes = arriving_->body_bytes;
  const auto more = (bytes > kSmallBodyBytes ? bytes - kSmallBodyBytes : 0) - held_;
  held_ += more;
  hall_.large_bytes += more;
  const auto of_peer = hall_.peers.Hold(caller_.key, more);
  const auto most = hall_.options.max_large_bytes;
  if (hall_.large_bytes <= most && of_peer <= most / 2) return true;
  Refuse(503, "too many large requests at once, try again later", {{"Retry-After", "5"}});
  return false;
}

void Connection::DropBody() {
  hall_.large_bytes -= held_;
  hall_.peers.Drop(caller_.key, held_);
  held_ = 0;
}

void Connection::Dispatch() {
  auto message = arriving_->parser.release();
  Request request = std::move(arriving_->request);
  auto refusal = std::move(arriving_->refusal);
  if (hall_.manners->leaving) refusal = Goodbye(*hall_.manners);
  arriving_.reset();
  request.body = std::move(message.body());
  const auto* const key = WebSocketKey(request);
  outbox_ =
      std::make_shared<Outbox>(Framing{.keep_alive = message.keep_alive(),
                                       .chunked = message.version() >= 11,
                                       .head = message.method() == http::verb::head,
                                       .key = key != nullptr && message.version() >= 11 ? *key : "",
                                       .message_bytes = hall_.options.max_message_bytes},
                               hall_.manners);
  if (ended_) outbox_->MarkGone();
  if (refusal) {
    TellRefused(hall_.options, refusal->status);
    outbox_->Reply(*refusal);
    return Flush();
  }
  hall_.handler(std::move(request), std::make_shared<WireExchange>(outbox_, hall_.waker, id_));
}

void Connection::Refuse(int status, std::string_view why, std::vector<Header> headers) {
  arriving_.reset();
  DropBody();
  last_ = true;
  TellRefused(hall_.options, status);
  output_ += Frame(MakeRefusal(*hall_.manners, status, std::string(why), std::move(headers)),
                   {.keep_alive = false});
  Flush();
}

void Connection::AwaitOutput() {
  if (awaits_output_ || closed_) return;
  awaits_output_ = true;
  socket_.async_wait(Descriptor::wait_write, [self = shared_from_this()](error_code error) {
    self->awaits_output_ = false;
    if (error || self->closed_) return;
    if (self->stage_ == Stage::kHandshake) return self->ShakeHands();
    if (std::exchange(self->reads_when_writable_, false)) self->OnReadable();
    if (!self->closed_) self->Flush();
  });
}

// False: there is nothing to write for now.
bool Connection::FillOutput() {
  if (written_ < output_.size()) return true;
  if (output_.capacity() > kFlushBytes) output_ = {};
  output_.clear();
  written_ = 0;
  if (outbox_) {
    const auto end = outbox_->Take(output_);
    if (!output_.empty()) return true;
    if (end != Outbox::End::kOpen) AfterAnswer(end);
  }
  if (ws_ && !last_) ws_->outbox->Take(output_);
  return !output_.empty();
}

// Never calls the handler: it may itself have been called from within an Exchange.
void Connection::Flush() {
  Send();
  CountUnsent();
}

void Connection::Send() {
  std::size_t budget = kFlushBytes;
  while (!closed_ && FillOutput()) {
    if (budget == 0) return AwaitOutput();
    const auto sent = wire_.Write(std::string_view(output_).substr(written_, budget));
    if (sent.state == Wire::State::kWantWrite) return AwaitOutput();
    if (sent.state != Wire::State::kMoved) return Close();
    written_ += sent.bytes;
    budget -= sent.bytes;
    since_ms_ = hall_.NowMs();
    if (outbox_) outbox_->Sent(sent.bytes);
    if (ws_) ws_->outbox->Sent(sent.bytes);
  }
  if (ws_ && !closed_) AfterFrames(budget < kFlushBytes);
  if (last_ && !outbox_ && !closed_ && !draining_) ShutDown();
}

void Connection::AfterAnswer(Outbox::End end) {
  if (end == Outbox::End::kAborted) return Close();
  if (end == Outbox::End::kUpgraded) return Upgrade();
  outbox_.reset();
  DropBody();
  since_ms_ = hall_.NowMs();
  if (end == Outbox::End::kClose || hall_.manners->leaving) {
    last_ = true;
    return;
  }
  AwaitInput();
  if (parsing_ || (input_.empty() && !ended_)) return;
  asio::post(hall_.context, [self = shared_from_this()] {
    if (!self->closed_ && !self->outbox_) self->Process({});
  });
}

std::int64_t Connection::PatienceMs() const {
  const auto& options = hall_.options;
  if (stage_ != Stage::kTalking) return options.handshake_timeout_ms;
  if (draining_) return options.idle_timeout_ms / kDrainShare;
  if (!arriving_ || last_ || written_ < output_.size()) return options.idle_timeout_ms;
  if (!arriving_->head_checked) return options.header_timeout_ms;
  const auto rate = std::max<std::size_t>(options.min_body_bytes_per_s, 1);
  return options.body_timeout_ms + static_cast<std::int64_t>(arriving_->body_bytes * 1000 / rate);
}

void Connection::Tick(std::int64_t now_ms) {
  if (ws_ && !draining_) return TickFrames(now_ms);
  const bool handler_works = outbox_ && written_ == output_.size();
  if (handler_works || now_ms - since_ms_ <= PatienceMs()) return;
  if (arriving_ && !last_) return Refuse(408, "the request did not arrive in time");
  Close();
}

}  // namespace muster::net

#include "net/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/exchange.h"
#include "net/sockets.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
// Asio is asked only when a descriptor is ready; reading and writing are plain system calls. That
// needs no buffer per waiting connection and spares the compiler the composed operations.
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;
using Parser = http::request_parser<http::string_body>;

constexpr std::size_t kScratchBytes = std::size_t{64} << 10;
constexpr std::size_t kMostAheadBytes = std::size_t{64}
                                        << 10;  // of requests behind the present one
constexpr std::size_t kMostDrainedBytes = std::size_t{64} << 20;
constexpr std::size_t kFlushBytes = std::size_t{1} << 20;  // then it is another connection's turn
constexpr int kTicks = 8;                                  // of one idle timeout
constexpr int kDrainTicks = 2;
constexpr int kAcceptBurst = 64;
constexpr int kMostRefused = 64;  // connections that are told 503 at a time; more are cut
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

int StatusFor(error_code error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  return 400;
}

class Connection;

// What connections see of the server. Used on the server's thread only.
struct Hall {
  asio::io_context context{1};
  ServerOptions options;
  Handler handler;
  std::shared_ptr<Waker> waker;
  std::string scratch = std::string(kScratchBytes, '\0');
  std::uint64_t last_id = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Connection>> connections;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Hall& hall, std::uint64_t id, Descriptor socket, std::optional<Peer> peer)
      : hall_(hall), id_(id), socket_(std::move(socket)), peer_(peer) {}

  void AwaitInput();
  void Refuse(int status, std::string_view why);
  void Flush();
  void Tick();
  void Close();

 private:
  void OnReadable();
  void Process(std::string_view fresh);
  std::size_t Parse(std::string_view data);
  void Dispatch();
  void ContinueIfAsked();
  void AwaitOutput();
  bool FillOutput();
  void AfterAnswer(Outbox::End end);
  void ShutDown();

  Hall& hall_;
  const std::uint64_t id_;
  Descriptor socket_;
  const std::optional<Peer> peer_;
  std::optional<Parser> parser_;    // while a request is arriving
  std::string input_;               // read, but not parsed yet
  std::shared_ptr<Outbox> outbox_;  // while a request is being answered
  std::string output_;
  std::size_t written_ = 0;  // of output_
  std::size_t drained_ = 0;
  int quiet_ticks_ = 0;
  bool awaits_input_ = false;
  bool awaits_output_ = false;
  bool parsing_ = false;
  bool continued_ = false;  // "100 Continue" is out
  bool ended_ = false;      // the peer sends no more
  bool last_ = false;       // what is in output_ is the last we say
  bool draining_ = false;   // we have said it
  bool closed_ = false;
};

void Connection::AwaitInput() {
  const bool ahead = outbox_ && input_.size() >= kMostAheadBytes;
  if (awaits_input_ || ended_ || closed_ || ahead) return;
  awaits_input_ = true;
  socket_.async_wait(Descriptor::wait_read, [self = shared_from_this()](error_code error) {
    self->awaits_input_ = false;
    if (!error && !self->closed_) self->OnReadable();
  });
}

void Connection::OnReadable() {
  auto& scratch = hall_.scratch;
  const ssize_t got = recv(socket_.native_handle(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (got < 0 && errno != EAGAIN && errno != EINTR) return Close();
  if (got == 0) {
    ended_ = true;
    if (draining_) return Close();
    // Half-closed clients are common in scripts: they get the answers to what they sent.
    return outbox_ ? outbox_->MarkGone() : Process({});
  }
  if (got > 0 && draining_) {
    drained_ += static_cast<std::size_t>(got);
    if (drained_ > kMostDrainedBytes) return Close();
  } else if (got > 0) {
    Process(std::string_view(scratch.data(), static_cast<std::size_t>(got)));
  }
  AwaitInput();
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
  if (!outbox_ && ended_ && !last_) Close();
}

// Hands out requests until one is not answered at once; returns how much of `data` they took.
std::size_t Connection::Parse(std::string_view data) {
  std::size_t used = 0;
  while (!outbox_ && !last_ && !closed_ && used < data.size()) {
    if (!parser_) {
      parser_.emplace();
      parser_->eager(true);
      parser_->header_limit(static_cast<std::uint32_t>(hall_.options.max_header_bytes));
      parser_->body_limit(hall_.options.max_body_bytes);
      quiet_ticks_ = 0;
      continued_ = false;
    }
    error_code error;
    const auto rest = data.substr(used);
    const std::size_t taken = parser_->put(asio::buffer(rest.data(), rest.size()), error);
    used += taken;
    if (error && error != http::error::need_more) {
      Refuse(StatusFor(error), error.message());
    } else if (parser_->is_done()) {
      Dispatch();
    } else if (taken == 0) {
      break;
    }
  }
  ContinueIfAsked();
  return used;
}

void Connection::ContinueIfAsked() {
  if (!parser_ || !parser_->is_header_done() || continued_) return;
  continued_ = true;
  if (!boost::beast::iequals(parser_->get()[http::field::expect], "100-continue")) return;
  output_ += "HTTP/1.1 100 Continue\r\n\r\n";
  Flush();
}

void Connection::Dispatch() {
  auto message = parser_->release();
  parser_.reset();
  auto target = ParseTarget({message.target().data(), message.target().size()});
  if (!target) return Refuse(400, target.error().message);
  Request request{.method = std::string(message.method_string()),
                  .path = std::move(target->path),
                  .query = std::move(target->query),
                  .body = std::move(message.body()),
                  .peer = peer_};
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  outbox_ = std::make_shared<Outbox>(Framing{.keep_alive = message.keep_alive(),
                                             .chunked = message.version() >= 11,
                                             .head = message.method() == http::verb::head});
  if (ended_) outbox_->MarkGone();
  hall_.handler(std::move(request), std::make_shared<WireExchange>(outbox_, hall_.waker, id_));
}

void Connection::Refuse(int status, std::string_view why) {
  parser_.reset();
  last_ = true;
  output_ +=
      Frame({.status = status, .content_type = "text/plain", .body = std::string(why) + "\n"},
            {.keep_alive = false});
  Flush();
}

void Connection::AwaitOutput() {
  if (awaits_output_ || closed_) return;
  awaits_output_ = true;
  socket_.async_wait(Descriptor::wait_write, [self = shared_from_this()](error_code error) {
    self->awaits_output_ = false;
    if (!error && !self->closed_) self->Flush();
  });
}

// False: there is nothing to write for now.
bool Connection::FillOutput() {
  if (written_ < output_.size()) return true;
  if (output_.capacity() > kFlushBytes) output_ = {};
  output_.clear();
  written_ = 0;
  if (!outbox_) return false;
  const auto end = outbox_->Take(output_);
  if (!output_.empty()) return true;
  if (end != Outbox::End::kOpen) AfterAnswer(end);
  return false;
}

// Never calls the handler: it may itself have been called from within an Exchange.
void Connection::Flush() {
  std::size_t budget = kFlushBytes;
  while (!closed_ && FillOutput()) {
    if (budget == 0) return AwaitOutput();
    const auto rest = std::string_view(output_).substr(written_, budget);
    const ssize_t sent =
        send(socket_.native_handle(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return AwaitOutput();
    if (sent < 0) return Close();
    written_ += static_cast<std::size_t>(sent);
    budget -= static_cast<std::size_t>(sent);
    quiet_ticks_ = 0;
    if (outbox_) outbox_->Sent(static_cast<std::size_t>(sent));
  }
  if (last_ && !outbox_ && !closed_ && !draining_) ShutDown();
}

void Connection::AfterAnswer(Outbox::End end) {
  if (end == Outbox::End::kAborted) return Close();
  outbox_.reset();
  quiet_ticks_ = 0;
  if (end == Outbox::End::kClose) {
    last_ = true;
    return;
  }
  AwaitInput();
  if (parsing_ || (input_.empty() && !ended_)) return;
  asio::post(hall_.context, [self = shared_from_this()] {
    if (!self->closed_ && !self->outbox_) self->Process({});
  });
}

// Closing with input unread would reset the connection, and the peer might lose our last answer.
void Connection::ShutDown() {
  if (ended_) return Close();
  draining_ = true;
  quiet_ticks_ = 0;
  shutdown(socket_.native_handle(), SHUT_WR);
  AwaitInput();
}

void Connection::Tick() {
  const bool handler_works = outbox_ && written_ == output_.size();
  if (handler_works) return;
  if (++quiet_ticks_ <= (draining_ ? kDrainTicks : kTicks)) return;
  if (parser_ && !last_) return Refuse(408, "the request did not arrive in time");
  Close();
}

void Connection::Close() {
  if (std::exchange(closed_, true)) return;
  if (outbox_) outbox_->MarkGone();
  outbox_.reset();
  error_code ignored;
  socket_.close(ignored);
  hall_.connections.erase(id_);  // callers hold a reference of their own
}

struct Listener {
  Descriptor socket;
  bool is_unix = false;
};

std::optional<Peer> PeerOf(int socket) {
  ucred found{};
  socklen_t size = sizeof(found);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return std::nullopt;
  return Peer{.uid = found.uid, .gid = found.gid, .pid = found.pid};
}

}  // namespace

struct HttpServer::Impl {
  // The way in from other threads, which may hold on to it longer than the server lives.
  class Door final : public Waker {
   public:
    explicit Door(Impl* impl) : impl_(impl) {}

    void Wake(std::uint64_t connection) override {
      std::unique_lock lock(mutex_);
      if (impl_ == nullptr) return;
      Impl* const impl = impl_;
      if (impl->hall.context.get_executor().running_in_this_thread()) {
        lock.unlock();  // the server cannot end while its own thread is here
        impl->Pump(connection);
      } else {
        asio::post(impl->hall.context, [impl, connection] { impl->Pump(connection); });
      }
    }

    void Shut() {
      const std::lock_guard lock(mutex_);
      impl_ = nullptr;
    }

   private:
    std::mutex mutex_;
    Impl* impl_;
  };

  bool Listen(Fd socket, bool is_unix);
  void Accept(Listener& listener);
  void AcceptSome(Listener& listener);
  void Admit(Fd socket, bool is_unix);
  void Pump(std::uint64_t connection);
  std::vector<std::shared_ptr<Connection>> Present() const;
  void Tick();
  void Run();
  void Stop();

  Hall hall;
  std::shared_ptr<Door> door = std::make_shared<Door>(this);
  SocketFile file;
  std::vector<std::unique_ptr<Listener>> listeners;
  asio::steady_timer ticker{hall.context};
  std::thread thread;
};

bool HttpServer::Impl::Listen(Fd socket, bool is_unix) {
  auto listener = std::make_unique<Listener>(Listener{Descriptor(hall.context), is_unix});
  error_code error;
  listener->socket.assign(socket.get(), error);
  if (error) return false;
  socket.Release();
  Accept(*listener);
  listeners.push_back(std::move(listener));
  return true;
}

void HttpServer::Impl::Accept(Listener& listener) {
  listener.socket.async_wait(Descriptor::wait_read, [this, &listener](error_code error) {
    if (!error) AcceptSome(listener);
  });
}

void HttpServer::Impl::AcceptSome(Listener& listener) {
  // accept4, not Asio's accept: that one would hand connections on to the workers we start.
  for (int i = 0; i < kAcceptBurst; ++i) {
    Fd socket(
        accept4(listener.socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.open()) {
      Admit(std::move(socket), listener.is_unix);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      // Mostly no descriptors left. The queue stays readable, so asking again at once would spin.
      auto pause = std::make_shared<asio::steady_timer>(hall.context, kAcceptPause);
      pause->async_wait([this, &listener, pause](error_code error) {
        if (!error) AcceptSome(listener);
      });
      return;
    }
  }
  Accept(listener);
}

void HttpServer::Impl::Admit(Fd socket, bool is_unix) {
  const auto most = static_cast<std::size_t>(hall.options.max_connections);
  const std::size_t present = hall.connections.size();
  if (present >= most + kMostRefused) return;
  if (!is_unix) {
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  auto peer = is_unix ? PeerOf(socket.get()) : std::nullopt;
  Descriptor descriptor(hall.context);
  error_code error;
  descriptor.assign(socket.get(), error);
  if (error) return;
  socket.Release();
  const auto id = ++hall.last_id;
  const auto connection = std::make_shared<Connection>(hall, id, std::move(descriptor), peer);
  hall.connections.emplace(id, connection);
  if (present >= most) return connection->Refuse(503, "too many connections, try again later");
  connection->AwaitInput();
}

void HttpServer::Impl::Pump(std::uint64_t connection) {
  const auto found = hall.connections.find(connection);
  if (found == hall.connections.end()) return;
  const auto held = found->second;
  held->Flush();
}

// A copy, for those who may close some of them.
std::vector<std::shared_ptr<Connection>> HttpServer::Impl::Present() const {
  std::vector<std::shared_ptr<Connection>> out;
  out.reserve(hall.connections.size());
  for (const auto& [id, connection] : hall.connections) out.push_back(connection);
  return out;
}

void HttpServer::Impl::Tick() {
  ticker.expires_after(
      std::chrono::milliseconds(std::max(1, hall.options.idle_timeout_ms / kTicks)));
  ticker.async_wait([this](error_code error) {
    if (error) return;
    for (const auto& connection : Present()) connection->Tick();
    Tick();
  });
}

void HttpServer::Impl::Run() {
  // Signals belong to the program's main thread; a thread begins with its creator's mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread = std::thread([this] { hall.context.run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void HttpServer::Impl::Stop() {
  for (const auto& connection : Present()) connection->Close();
  hall.context.stop();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl, std::uint16_t port)
    : impl_(std::move(impl)), port_(port) {}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(ServerOptions options, Handler handler) {
  if (options.unix_path.empty() && !options.loopback_port) {
    return Fail(ErrorCode::kInvalid, "the server has neither a socket path nor a port");
  }
  UnixListener local;
  Fd loopback;
  if (!options.unix_path.empty()) {
    auto opened = ListenUnix(options.unix_path, options.unix_mode);
    if (!opened) return tl::unexpected(opened.error());
    local = std::move(*opened);
  }
  if (options.loopback_port) {
    auto opened = ListenLoopback(*options.loopback_port);
    if (!opened) return tl::unexpected(opened.error());
    loopback = std::move(*opened);
  }
  const std::uint16_t port = loopback.open() ? PortOf(loopback) : std::uint16_t{0};
  // Beast counts the bytes of a header in 16 bits.
  options.max_header_bytes = std::min(options.max_header_bytes, std::size_t{64} << 10);
  try {
    auto impl = std::make_unique<Impl>();
    impl->hall.options = std::move(options);
    impl->hall.handler = std::move(handler);
    impl->hall.waker = impl->door;
    impl->file = std::move(local.file);
    if ((local.socket.open() && !impl->Listen(std::move(local.socket), true)) ||
        (loopback.open() && !impl->Listen(std::move(loopback), false))) {
      return Fail(ErrorCode::kUnavailable, "the system cannot watch another socket");
    }
    impl->Tick();
    impl->Run();
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl), port));
  } catch (const std::system_error& error) {  // no descriptor or no thread to be had
    return Fail(ErrorCode::kUnavailable, std::string("cannot start the server: ") + error.what());
  }
}

HttpServer::~HttpServer() {
  MUSTER_CHECK(impl_->thread.get_id() != std::this_thread::get_id(),
               "the server is not destroyed by its own thread");
  impl_->door->Shut();
  // Behind what was already posted, so that answers given before are still sent.
  asio::post(impl_->hall.context, [this] { impl_->Stop(); });
  impl_->thread.join();
}

void HttpServer::Post(std::function<void()> task) {
  asio::post(impl_->hall.context, std::move(task));
}

void HttpServer::After(int ms, std::function<void()> task) {
  auto timer =
      std::make_shared<asio::steady_timer>(impl_->hall.context, std::chrono::milliseconds(ms));
  timer->async_wait([timer, task = std::move(task)](error_code error) {
    if (!error) task();
  });
}

}  // namespace muster::net

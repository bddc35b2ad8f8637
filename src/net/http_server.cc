#include "net/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/connection.h"
#include "net/exchange.h"
#include "net/relay.h"
#include "net/sockets.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kTicks = 8;  // of the shortest timeout
constexpr int kAcceptBurst = 64;
constexpr int kMostRefused = 64;  // connections that are told 503 at a time; more are cut
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

enum class Kind { kUnix, kPlainTcp, kTls };

struct Listener {
  Descriptor socket;
  Kind kind = Kind::kUnix;
};

std::optional<Peer> PeerOf(int socket) {
  ucred found{};
  socklen_t size = sizeof(found);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return std::nullopt;
  return Peer{.uid = found.uid, .gid = found.gid, .pid = found.pid};
}

Result<void> Check(const ServerOptions& options) {
  if (options.unix_path.empty() && !options.loopback_port && !options.tcp) {
    return Fail(ErrorCode::kInvalid, "the server has neither a socket path nor a port");
  }
  if (options.tls && !options.tcp) {
    return Fail(ErrorCode::kInvalid, "there is a certificate but no address to use it on",
                "name the TCP address to listen on");
  }
  if (options.tcp && !options.tls && !IsLoopback(options.tcp->address)) {
    return Fail(ErrorCode::kInvalid,
                "will not listen on " + options.tcp->address +
                    " without TLS: tokens and data would "
                    "cross the network in the clear",
                "name a certificate and its key, or listen on 127.0.0.1");
  }
  return {};
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

  bool Listen(Fd socket, Kind kind);
  void Accept(Listener& listener);
  void AcceptSome(Listener& listener);
  void Admit(Fd socket, Kind kind);
  std::shared_ptr<const TlsContext> Tls();
  Result<void> LoadTls();
  void Pump(std::uint64_t connection);
  std::vector<std::shared_ptr<Connection>> Present() const;
  void Tick();
  void Run();
  void Retire();
  void Stop();

  Hall hall;
  std::shared_ptr<Door> door = std::make_shared<Door>(this);
  SocketFile file;
  std::vector<std::unique_ptr<Listener>> listeners;
  asio::steady_timer ticker{hall.context};
  std::mutex tls_mutex;
  std::shared_ptr<const TlsContext> tls;
  std::thread thread;
};

bool HttpServer::Impl::Listen(Fd socket, Kind kind) {
  auto listener = std::make_unique<Listener>(Listener{Descriptor(hall.context), kind});
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
  if (!listener.socket.is_open()) return;  // it has retired
  // accept4, not Asio's accept: that one would hand connections on to the workers we start.
  for (int i = 0; i < kAcceptBurst; ++i) {
    Fd socket(
        accept4(listener.socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.open()) {
      Admit(std::move(socket), listener.kind);
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

void HttpServer::Impl::Admit(Fd socket, Kind kind) {
  const auto most = static_cast<std::size_t>(hall.options.max_connections);
  const std::size_t present = hall.connections.size();
  // A refusal over TLS would cost the handshake that there is no room for.
  if (present >= most + (kind == Kind::kTls ? 0 : kMostRefused)) return;
  Caller caller;
  if (kind == Kind::kUnix) {
    caller.peer = PeerOf(socket.get());
    if (!caller.peer) return;
  } else {
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    caller.remote = RemoteAddress(socket.get());
    if (caller.remote.empty()) return;
  }
  const auto key = PeerKey(caller.peer, caller.remote);
  const bool welcome =
      present < most && hall.peers.Enter(key, hall.options.max_connections_per_peer, hall.NowMs());
  if (!welcome && kind == Kind::kTls) return;
  Descriptor descriptor(hall.context);
  error_code error;
  descriptor.assign(socket.get(), error);
  if (welcome && error) hall.peers.Leave(key);
  if (error) return;
  socket.Release();
  if (welcome) caller.key = key;
  const auto id = ++hall.last_id;
  const auto connection = std::make_shared<Connection>(
      hall, id, std::move(descriptor), std::move(caller), kind == Kind::kTls ? Tls() : nullptr);
  hall.connections.emplace(id, connection);
  hall.open = hall.connections.size();
  if (!welcome) {
    return connection->Refuse(503, "too many connections, try again later", {{"Retry-After", "1"}});
  }
  connection->AwaitInput();
}

std::shared_ptr<const TlsContext> HttpServer::Impl::Tls() {
  const std::lock_guard lock(tls_mutex);
  return tls;
}

Result<void> HttpServer::Impl::LoadTls() {
  if (!hall.options.tls) return {};
  auto loaded = TlsContext::ForServer(*hall.options.tls);
  if (!loaded) return tl::unexpected(loaded.error());
  const std::lock_guard lock(tls_mutex);
  tls = std::move(*loaded);
  return {};
}

void HttpServer::Impl::Pump(std::uint64_t connection) {
  const auto found = hall.connections.find(connection);
  if (found == hall.connections.end()) return;
  const auto held = found->second;
  held->Wake();
}

// A copy, for those who may close some of them.
std::vector<std::shared_ptr<Connection>> HttpServer::Impl::Present() const {
  std::vector<std::shared_ptr<Connection>> out;
  out.reserve(hall.connections.size());
  for (const auto& [id, connection] : hall.connections) out.push_back(connection);
  return out;
}

void HttpServer::Impl::Tick() {
  const auto& options = hall.options;
  const int shortest =
      std::min({options.idle_timeout_ms, options.header_timeout_ms, options.body_timeout_ms,
                options.handshake_timeout_ms, options.ping_interval_ms});
  ticker.expires_after(std::chrono::milliseconds(std::max(1, shortest / kTicks)));
  ticker.async_wait([this](error_code error) {
    if (error) return;
    const auto now_ms = hall.NowMs();
    for (const auto& connection : Present()) connection->Tick(now_ms);
    hall.peers.Sweep(now_ms);
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

void HttpServer::Impl::Retire() {
  hall.manners->leaving = true;
  for (auto& listener : listeners) {
    AcceptSome(*listener);  // who is at the door is told
    error_code ignored;
    listener->socket.close(ignored);
  }
}

void HttpServer::Impl::Stop() {
  Retire();
  hall.ending = true;
  for (const auto& connection : Present()) connection->Leave();
  if (hall.connections.empty()) return hall.context.stop();
  auto last = std::make_shared<asio::steady_timer>(
      hall.context, std::chrono::milliseconds(hall.options.farewell_ms));
  last->async_wait([this, last](error_code) {
    for (const auto& connection : Present()) connection->Close();
    hall.context.stop();
  });
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(ServerOptions options, Handler handler) try {
  if (auto sane = Check(options); !sane) return tl::unexpected(sane.error());
  // Beast counts the bytes of a header in 16 bits.
  options.max_header_bytes = std::min(options.max_header_bytes, std::size_t{64} << 10);
  std::unique_ptr<HttpServer> out(new HttpServer(std::make_unique<Impl>()));
  Impl& impl = *out->impl_;
  impl.hall.options = std::move(options);
  impl.hall.handler = std::move(handler);
  impl.hall.manners->refusal = impl.hall.options.refusal;
  impl.hall.waker = impl.door;
  if (auto loaded = impl.LoadTls(); !loaded) return tl::unexpected(loaded.error());
  if (auto opened = out->Open(); !opened) return tl::unexpected(opened.error());
  impl.Tick();
  impl.Run();
  return out;
} catch (const std::system_error& error) {  // no descriptor or no thread to be had
  return Fail(ErrorCode::kUnavailable, std::string("cannot start the server: ") + error.what());
}

Result<void> HttpServer::Open() {
  const auto& options = impl_->hall.options;
  bool watched = true;
  if (!options.unix_path.empty()) {
    auto opened = ListenUnix(options.unix_path, options.unix_mode);
    if (!opened) return tl::unexpected(opened.error());
    impl_->file = std::move(opened->file);
    watched = impl_->Listen(std::move(opened->socket), Kind::kUnix);
  }
  if (options.loopback_port) {
    auto opened = ListenLoopback(*options.loopback_port);
    if (!opened) return tl::unexpected(opened.error());
    port_ = PortOf(*opened);
    watched = watched && impl_->Listen(std::move(*opened), Kind::kPlainTcp);
  }
  if (options.tcp) {
    auto opened = ListenTcp(options.tcp->address, options.tcp->port);
    if (!opened) return tl::unexpected(opened.error());
    tcp_port_ = PortOf(*opened);
    const Kind kind = options.tls ? Kind::kTls : Kind::kPlainTcp;
    watched = watched && impl_->Listen(std::move(*opened), kind);
  }
  if (!watched) return Fail(ErrorCode::kUnavailable, "the system cannot watch another socket");
  return {};
}

std::weak_ptr<WebSocket> HttpServer::Relay(Exchange& exchange, RelayTarget target) {
  return StartRelay(impl_->hall.context, exchange, std::move(target));
}

std::size_t HttpServer::connections() const { return impl_->hall.open; }

Result<void> HttpServer::ReloadTls() { return impl_->LoadTls(); }

HttpServer::~HttpServer() {
  MUSTER_CHECK(impl_->thread.get_id() != std::this_thread::get_id(),
               "the server is not destroyed by its own thread");
  if (impl_->thread.joinable()) {
    impl_->hall.manners->leaving = true;  // also for exchanges that others drop from now on
    // Behind what was already posted, so that answers given before are still sent.
    asio::post(impl_->hall.context, [this] { impl_->Stop(); });
    impl_->thread.join();
  }
  impl_->door->Shut();
}

void HttpServer::Retire() {
  impl_->hall.manners->leaving = true;
  asio::post(impl_->hall.context, [this] { impl_->Retire(); });
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

#include "net/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace muster::net {
namespace {

constexpr int kBacklog = 1024;

std::string Reason(int number) { return std::strerror(number); }

const sockaddr* Generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

sockaddr* Generic(sockaddr_storage& address) { return reinterpret_cast<sockaddr*>(&address); }

std::string Where(const std::string& host, std::uint16_t port) {
  if (host.find(':') == std::string::npos) return fmt::format("{}:{}", host, port);
  return fmt::format("[{}]:{}", host, port);
}

Result<sockaddr_un> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "the path of the socket is empty or holds a NUL");
  }
  if (path.size() >= sizeof(address.sun_path)) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("the path of the socket \"{}\" has {} bytes; the system allows {}",
                            path, path.size(), sizeof(address.sun_path) - 1),
                "choose a shorter path");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// The same words for a listener that cannot be opened, whatever the step that failed.
tl::unexpected<Error> CannotListen(const std::string& where, int reason) {
  const std::string message = "cannot listen on " + where + ": " + Reason(reason);
  switch (reason) {
    case EADDRINUSE:
      return Fail(ErrorCode::kConflict, message, "stop what listens there, or choose another");
    case EACCES:
    case EPERM:
    case EROFS:
      return Fail(ErrorCode::kDenied, message, "check who may write there");
    case ENOENT:
    case ENOTDIR:
      return Fail(ErrorCode::kNotFound, message, "create the folder first");
    default:
      return Fail(ErrorCode::kUnavailable, message);
  }
}

tl::unexpected<Error> CannotConnect(const std::string& where, int reason) {
  const std::string message = "cannot reach " + where + ": " + Reason(reason);
  switch (reason) {
    case EACCES:
    case EPERM:
      return Fail(ErrorCode::kDenied, message, "ask whoever runs musterd for access to the socket");
    case EAGAIN:
    case EALREADY:
    case EINPROGRESS:
    case ETIMEDOUT:
      return Fail(ErrorCode::kTimeout, "cannot reach " + where + ": it did not answer in time");
    default:
      return Fail(
          ErrorCode::kUnavailable, message,
          where.starts_with('/')
              ? "is musterd running? `systemctl start musterd` or `musterd` starts it"
              : "is musterd running there, with --listen? `systemctl start musterd` on that "
                "machine starts it");
  }
}

// Makes way for a new socket file: what is there must be a socket that nobody listens on.
Result<void> RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return CannotListen(path, errno);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Fail(ErrorCode::kConflict,
                "cannot listen on " + path + ": there is a file of another kind",
                "remove it or choose another path");
  }
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.open()) return CannotListen(path, errno);
  // A server whose queue is full (EAGAIN) is alive too.
  if (connect(probe.get(), Generic(address), sizeof(address)) == 0 || errno == EAGAIN) {
    return Fail(ErrorCode::kConflict, "another musterd is listening on " + path,
                "stop it, or choose another path");
  }
  if (errno != ECONNREFUSED && errno != ENOENT) return CannotListen(path, errno);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return CannotListen(path, errno);
  return {};
}

}  // namespace

void Fd::Close() {
  if (value_ >= 0) close(std::exchange(value_, -1));
}

SocketFile::SocketFile(std::string path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  path_ = std::move(path);
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

SocketFile& SocketFile::operator=(SocketFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

SocketFile::~SocketFile() {
  struct stat found {};
  if (path_.empty() || lstat(path_.c_str(), &found) != 0) return;
  if (found.st_dev == device_ && found.st_ino == inode_) unlink(path_.c_str());
}

Result<UnixListener> ListenUnix(const std::string& path, std::uint32_t mode) {
  const auto address = UnixAddress(path);
  if (!address) return tl::unexpected(address.error());
  if (auto removed = RemoveStale(path, *address); !removed) {
    return tl::unexpected(removed.error());
  }
  UnixListener out;
  out.socket = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.socket.open()) return CannotListen(path, errno);
  // Before bind: the file must at no moment be open to more people than it will be.
  if (fchmod(out.socket.get(), mode) != 0) return CannotListen(path, errno);
  if (bind(out.socket.get(), Generic(*address), sizeof(*address)) != 0) {
    return CannotListen(path, errno);
  }
  out.file = SocketFile(path);
  if (chmod(path.c_str(), mode) != 0 || listen(out.socket.get(), kBacklog) != 0) {
    return CannotListen(path, errno);
  }
  return out;
}

Result<Fd> ListenLoopback(std::uint16_t port) { return ListenTcp("127.0.0.1", port); }

Result<Fd> ListenTcp(const std::string& address, std::uint16_t port) {
  const std::string where = Where(address, port);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST | AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
    return Fail(ErrorCode::kInvalid,
                "cannot listen on " + where + ": \"" + address + "\" is not an address",
                "use an address such as 0.0.0.0, :: or 10.0.0.7");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  Fd out(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.open()) return CannotListen(where, errno);
  const int on = 1;
  setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(out.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(out.get(), kBacklog) != 0) {
    return CannotListen(where, errno);
  }
  return out;
}

bool IsLoopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr four{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::uint16_t PortOf(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), Generic(address), &size) != 0) return 0;
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string RemoteAddress(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char text[INET6_ADDRSTRLEN] = {};
  if (getpeername(socket, Generic(address), &size) != 0) return {};
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(address).sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
    // One machine, one text: 10.0.0.7 comes as ::ffff:10.0.0.7 to a socket for both kinds.
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
      inet_ntop(AF_INET, &six.s6_addr[12], text, sizeof(text));
    } else {
      inet_ntop(AF_INET6, &six, text, sizeof(text));
    }
  }
  return text;
}

void SetSocketTimeout(int socket, int option, int timeout_ms) {
  timeval time{};
  time.tv_sec = timeout_ms / 1000;
  time.tv_usec = timeout_ms % 1000 * 1000;
  setsockopt(socket, SOL_SOCKET, option, &time, sizeof(time));
}

Result<Fd> ConnectUnix(const std::string& path, int timeout_ms) {
  const auto address = UnixAddress(path);
  if (!address) return tl::unexpected(address.error());
  Fd out(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!out.open()) return CannotConnect(path, errno);
  SetSocketTimeout(out.get(), SO_SNDTIMEO, timeout_ms);
  while (connect(out.get(), Generic(*address), sizeof(*address)) != 0) {
    if (errno != EINTR) return CannotConnect(path, errno);
  }
  return out;
}

Result<Fd> BeginConnectUnix(const std::string& path) {
  const auto address = UnixAddress(path);
  if (!address) return tl::unexpected(address.error());
  Fd out(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.open()) return CannotConnect(path, errno);
  // EAGAIN is a full queue here, and no event would tell of room in it.
  if (connect(out.get(), Generic(*address), sizeof(*address)) == 0) return out;
  return CannotConnect(path, errno);
}

Result<Fd> BeginConnectLoopback(std::uint16_t port, bool v6) {
  const std::string where = Where(v6 ? "::1" : "127.0.0.1", port);
  Fd out(socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.open()) return CannotConnect(where, errno);
  const int on = 1;
  setsockopt(out.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 address6{};
  address6.sin6_family = AF_INET6;
  address6.sin6_port = htons(port);
  address6.sin6_addr = in6addr_loopback;
  const auto* const to = v6 ? reinterpret_cast<const sockaddr*>(&address6)
                            : reinterpret_cast<const sockaddr*>(&address);
  const auto size = static_cast<socklen_t>(v6 ? sizeof(address6) : sizeof(address));
  if (connect(out.get(), to, size) != 0 && errno != EINPROGRESS) {
    return CannotConnect(where, errno);
  }
  return out;
}

Result<Fd> ConnectTcp(const std::string& host, std::uint16_t port, int timeout_ms) {
  const std::string where = Where(host, port);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (failed != 0) {
    return Fail(ErrorCode::kUnavailable,
                "cannot reach " + where + ": " + std::string(gai_strerror(failed)),
                "check the name of the machine");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  int reason = ECONNREFUSED;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    Fd out(socket(next->ai_family, next->ai_socktype | SOCK_CLOEXEC, next->ai_protocol));
    if (!out.open()) return CannotConnect(where, errno);
    SetSocketTimeout(out.get(), SO_SNDTIMEO, timeout_ms);
    const int on = 1;
    setsockopt(out.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    int status = connect(out.get(), next->ai_addr, next->ai_addrlen);
    // Interrupted, it goes on by itself; asking again tells how far it has come.
    while (status != 0 && errno == EINTR) {
      status = connect(out.get(), next->ai_addr, next->ai_addrlen);
    }
    if (status == 0 || errno == EISCONN) return out;
    reason = errno;
  }
  return CannotConnect(where, reason);
}

}  // namespace muster::net

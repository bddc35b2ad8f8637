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
      return Fail(ErrorCode::kUnavailable, message,
                  "is musterd running? start it with scripts/up or musterd");
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

Result<Fd> ListenLoopback(std::uint16_t port) {
  const std::string where = fmt::format("127.0.0.1:{}", port);
  Fd out(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.open()) return CannotListen(where, errno);
  const int on = 1;
  setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(out.get(), kBacklog) != 0) {
    return CannotListen(where, errno);
  }
  return out;
}

std::uint16_t PortOf(const Fd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.sin_port);
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

Result<Fd> ConnectTcp(const std::string& host, std::uint16_t port, int timeout_ms) {
  const std::string where = fmt::format("{}:{}", host, port);
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

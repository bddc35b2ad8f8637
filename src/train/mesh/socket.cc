#include "train/mesh/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "train/mesh/address.h"

namespace muster::train {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr std::size_t kMostFds = 4;  // in one message

std::string ErrnoText(int code) { return std::strerror(code); }

struct FreeAddresses {
  void operator()(addrinfo* info) const { freeaddrinfo(info); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> ReadAddress(const std::string& address, bool to_listen) {
  const auto [host, port] = SplitAddress(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const char* service = port.empty() ? "0" : port.c_str();
  if ((!to_listen && port.empty()) || getaddrinfo(host.c_str(), service, &hints, &found) != 0) {
    return Fail(ErrorCode::kInvalid, fmt::format("\"{}\" is no address of a worker", address),
                "give numbers, as in 127.0.0.1 or 10.0.0.7");
  }
  return Addresses(found);
}

struct UnixAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

UnixAddress AbstractAddress(const std::string& name) {
  UnixAddress out;
  out.address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(out.address.sun_path) - 1);
  std::memcpy(out.address.sun_path + 1, name.data(), length);
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return out;
}

tl::unexpected<Error> CannotReach(const std::string& where, int code) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("cannot connect to {}: {}", where, ErrnoText(code)),
              "its process may have ended");
}

Result<Fd> Dial(int family, const sockaddr* address, socklen_t size, const std::string& where,
                std::int64_t deadline_ns) {
  Fd fd(socket(family, kSocketFlags, 0));
  if (!fd) return CannotReach(where, errno);
  while (connect(fd.get(), address, size) != 0) {
    if (errno == EINPROGRESS) break;
    // Too many wait at a local socket; nothing tells when there is room.
    if (errno != EAGAIN || NowNs() >= deadline_ns) return CannotReach(where, errno);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (auto ready = AwaitSocket(fd.get(), POLLOUT, deadline_ns); !ready) {
    return Fail(ErrorCode::kTimeout, fmt::format("{} does not answer", where),
                "its machine may be cut off; a longer time-out waits longer");
  }
  int code = 0;
  socklen_t length = sizeof code;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &code, &length);
  if (code != 0) return CannotReach(where, code);
  return fd;
}

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails on Unix sockets: nothing lost
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

std::int64_t NowNs() { return SystemClock().MonotonicNs(); }

Result<Listening> ListenTcp(const std::string& address) {
  auto info = ReadAddress(address, true);
  if (!info) return tl::unexpected(info.error());
  Listening out;
  out.fd = Fd(socket((*info)->ai_family, kSocketFlags, 0));
  // Connections that outlive a listener do not keep its port from the next one.
  const int on = 1;
  if (out.fd) setsockopt(out.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!out.fd || bind(out.fd.get(), (*info)->ai_addr, (*info)->ai_addrlen) != 0 ||
      listen(out.fd.get(), SOMAXCONN) != 0) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cannot listen on {}: {}", address, ErrnoText(errno)),
                "give an address of this machine");
  }
  out.address = JoinAddress(OwnAddress(out.fd.get()));
  return out;
}

Result<Fd> ListenUnix(const std::string& name) {
  Fd fd(socket(AF_UNIX, kSocketFlags, 0));
  const auto at = AbstractAddress(name);
  if (!fd || bind(fd.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cannot listen on the socket {}: {}", name, ErrnoText(errno)));
  }
  return fd;
}

Accepted AcceptOn(int listener) {
  Accepted out;
  out.fd = Fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!out.fd) {
    out.code = errno;
  } else {
    SetNoDelay(out.fd.get());
  }
  return out;
}

Result<Fd> DialTcp(const std::string& address, std::int64_t deadline_ns) {
  auto info = ReadAddress(address, false);
  if (!info) return tl::unexpected(info.error());
  auto fd = Dial((*info)->ai_family, (*info)->ai_addr, (*info)->ai_addrlen, address, deadline_ns);
  if (fd) SetNoDelay(fd->get());
  return fd;
}

Result<Fd> DialUnix(const std::string& name, std::int64_t deadline_ns) {
  const auto at = AbstractAddress(name);
  return Dial(AF_UNIX, reinterpret_cast<const sockaddr*>(&at.address), at.size,
              "the socket " + name, deadline_ns);
}

Result<void> AwaitSocket(int fd, short events, std::int64_t deadline_ns) {
  while (true) {
    const std::int64_t left_ns = deadline_ns - NowNs();
    pollfd poll_fd{fd, events, 0};
    const int timeout_ms =
        static_cast<int>(std::clamp<std::int64_t>((left_ns + 999'999) / 1'000'000, 0, 1'000'000));
    const int ready = poll(&poll_fd, 1, timeout_ms);
    if (ready > 0) return {};
    if (ready == 0 && left_ns <= 0) {
      return Fail(ErrorCode::kTimeout, "the other side does not answer");
    }
  }
}

Result<void> SendWith(int fd, std::span<const std::byte> bytes, std::span<const int> fds) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFds)> control{};
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(head), fds.data(), sizeof(int) * fds.size());
  }
  // A fresh socket takes a few hundred bytes at once.
  const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) return {};
  return Fail(ErrorCode::kUnavailable, "the other side has closed the connection");
}

ssize_t ReceiveWith(int fd, std::span<std::byte> into, std::vector<Fd>& fds) {
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFds)> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(head) + i * sizeof(int), sizeof received);
      fds.emplace_back(received);
    }
  }
  return got;
}

}  // namespace muster::train

// Sockets: the few calls that a mesh makes, with their errors as Results.
//
// Addresses are numbers ("127.0.0.1:41234", "[::1]:41234"), so nothing waits for a name server.
// Names of Unix sockets are abstract: they vanish with the process, however it ends. Sockets do not
// block and are not inherited by programs that are started.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::train {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

std::int64_t NowNs();  // monotonic

struct Listening {
  Fd fd;
  std::string address;  // with the port that was free
};
// Without a port: on any that is free.
Result<Listening> ListenTcp(const std::string& address);
Result<Fd> ListenUnix(const std::string& name);
// The connection, or nothing when none waits any more; `code` is errno then.
struct Accepted {
  Fd fd;
  int code = 0;
};
Accepted AcceptOn(int listener);

Result<Fd> DialTcp(const std::string& address, std::int64_t deadline_ns);
Result<Fd> DialUnix(const std::string& name, std::int64_t deadline_ns);

// Until the socket is ready for these poll events; an error when it is not before the deadline.
Result<void> AwaitSocket(int fd, short events, std::int64_t deadline_ns);

// One message of at most a few hundred bytes with file descriptors beside it; all or an error.
Result<void> SendWith(int fd, std::span<const std::byte> bytes, std::span<const int> fds);
// What is there: above 0, 0 at the end, -1 with errno. Descriptors that came along are appended.
ssize_t ReceiveWith(int fd, std::span<std::byte> into, std::vector<Fd>& fds);

}  // namespace muster::train

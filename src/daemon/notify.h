// ServiceManager: what the daemon tells the manager that started it, as sd_notify(3) describes.
//
// One datagram a message to the socket named in the environment. Without such a socket nothing is
// sent; a message that cannot be sent is dropped, because nothing depends on it but the manager's
// own time limits. Written here because the library that Debian has for it would be the only one
// that musterd could not link statically.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::daemon {

class ServiceManager {
 public:
  // `socket`: a path, an abstract name that begins with @, or nothing at all.
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}

  // "READY=1"; several with newlines between.
  void Tell(std::string_view message) const;

 private:
  std::string socket_;
};

// How often the manager wants a sign of life, from the texts of WATCHDOG_USEC and WATCHDOG_PID;
// 0: not at all, or not from us.
std::int64_t WatchdogMs(const char* usec, const char* pid, std::int64_t own_pid);

}  // namespace muster::daemon

// Sockets: opening both ends of a Unix or TCP connection, with errors for people.
//
// A socket file is replaced when nobody listens on it any more, never when somebody does and never
// when it is another kind of file. Two servers that start on one path in the same instant are not
// told apart here; the lock on the state folder does that. Everything is closed on exec, because
// the daemon starts workers and they must not inherit connections.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace muster::net {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int value) : value_(value) {}
  Fd(Fd&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Fd() { Close(); }

  int get() const { return value_; }
  bool open() const { return value_ >= 0; }
  int Release() { return std::exchange(value_, -1); }
  void Close();

 private:
  int value_ = -1;
};

// A socket's name in the file system; removed with the value, unless a successor has taken it.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path);  // takes note of which file is there now
  SocketFile(SocketFile&& other) noexcept { *this = std::move(other); }
  SocketFile& operator=(SocketFile&& other) noexcept;
  ~SocketFile();

 private:
  std::string path_;  // empty: none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

struct UnixListener {
  SocketFile file;
  Fd socket;
};

// Listening sockets do not block; mode is the socket file's, whatever the umask.
Result<UnixListener> ListenUnix(const std::string& path, std::uint32_t mode);
Result<Fd> ListenLoopback(std::uint16_t port);
// `address` is numeric: 0.0.0.0 and :: mean every network of this machine.
Result<Fd> ListenTcp(const std::string& address, std::uint16_t port);
bool IsLoopback(const std::string& address);  // numeric, or localhost
std::uint16_t PortOf(const Fd& socket);
// The other end of a TCP connection, "10.0.0.7"; empty when it has gone.
std::string RemoteAddress(int socket);

// Connected sockets block. timeout_ms 0: as long as the system is willing to wait.
Result<Fd> ConnectUnix(const std::string& path, int timeout_ms);
Result<Fd> ConnectTcp(const std::string& host, std::uint16_t port, int timeout_ms);

// Do not block: connected, or failed, when the socket is ready for writing.
Result<Fd> BeginConnectUnix(const std::string& path);
Result<Fd> BeginConnectLoopback(std::uint16_t port, bool v6);

// How long calls on a blocking socket may wait: SO_RCVTIMEO or SO_SNDTIMEO; 0: for ever.
void SetSocketTimeout(int socket, int option, int timeout_ms);

}  // namespace muster::net

// Dial: where a daemon is, and a connection to it.
//
// An address is a socket's path, or https://host:port, or http://host:port on this machine only:
// tokens never cross a network in the clear. Over TLS the certificate must be for the host that
// was asked for, and lead to a root that the system or `ca_file` trusts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/sockets.h"
#include "net/tls.h"

namespace muster::net {

struct Endpoint {
  std::string unix_path{};
  std::string host = "127.0.0.1";  // these when unix_path is empty
  std::uint16_t port = 0;
  bool tls = false;
  std::string ca_file{};  // PEM, trusted beside the system's roots
};

// "/run/muster/musterd.sock", "https://gpu.example.org:7443" or "http://localhost:7070"; a port is
// 443 or 80 when it is not given.
Result<Endpoint> ParseEndpoint(std::string_view text);
// For messages and for the Host header: "gpu.example.org:7443", or the path.
std::string Describe(const Endpoint& endpoint);

// A blocking connection; the wire does not own the socket.
struct Line {
  Fd socket{};
  Wire wire{};
};

// `tls` is kept for the next call; null at first. timeout_ms is for each step; 0: none.
Result<Line> Dial(const Endpoint& endpoint, std::shared_ptr<const TlsContext>& tls, int timeout_ms);

}  // namespace muster::net

#include "train/mesh/address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <memory>

namespace muster::train {
namespace {

Address FromSocket(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return {host.data(), port.data()};
}

}  // namespace

Address SplitAddress(const std::string& address) {
  if (address.starts_with('[')) {
    const auto end = address.find(']');
    if (end == std::string::npos) return {address, ""};
    const bool port = end + 1 < address.size() && address[end + 1] == ':';
    return {address.substr(1, end - 1), port ? address.substr(end + 2) : ""};
  }
  const auto colon = address.find(':');
  if (colon == std::string::npos || address.find(':', colon + 1) != std::string::npos) {
    return {address, ""};
  }
  return {address.substr(0, colon), address.substr(colon + 1)};
}

std::string JoinAddress(const Address& address) {
  const bool wide = address.host.find(':') != std::string::npos;
  return wide ? fmt::format("[{}]:{}", address.host, address.port)
              : fmt::format("{}:{}", address.host, address.port);
}

Result<std::string> ResolveAddress(const std::string& address) {
  const auto [host, port] = SplitAddress(address);
  const bool number = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (host.empty() || !number) {
    return Fail(ErrorCode::kInvalid, fmt::format("\"{}\" is no address", address),
                "give a host and a port, as in 10.0.0.7:41234");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) {  // a name may yet come to be known
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cannot look up \"{}\": {}", host, gai_strerror(code)),
                "check the name, or give the number");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, freeaddrinfo);
  return JoinAddress(FromSocket(found->ai_addr, found->ai_addrlen));
}

Address OwnAddress(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  return FromSocket(reinterpret_cast<const sockaddr*>(&bound), size);
}

}  // namespace muster::train

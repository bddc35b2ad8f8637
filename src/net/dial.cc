#include "net/dial.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <charconv>
#include <utility>

namespace muster::net {
namespace {

tl::unexpected<Error> BadAddress(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kInvalid,
              fmt::format("\"{}\" is not the address of a daemon: {}", text, why),
              "use the path of its socket, or https://host:port");
}

Result<void> Secure(const Endpoint& endpoint, Line& line, std::shared_ptr<const TlsContext>& tls,
                    int timeout_ms) {
  if (tls == nullptr) {
    auto made = TlsContext::ForClient(endpoint.ca_file);
    if (!made) return tl::unexpected(made.error());
    tls = std::move(*made);
  }
  const std::string where = Describe(endpoint);
  if (!line.wire.StartClient(tls, endpoint.host)) {
    return Fail(ErrorCode::kInvalid, "\"" + endpoint.host + "\" is not a name for TLS");
  }
  SetSocketTimeout(line.socket.get(), SO_RCVTIMEO, timeout_ms);
  switch (line.wire.Handshake().state) {
    case Wire::State::kMoved:
      SetSocketTimeout(line.socket.get(), SO_RCVTIMEO, 0);
      return {};
    case Wire::State::kWantRead:
    case Wire::State::kWantWrite:
      return Fail(ErrorCode::kTimeout, where + " did not answer in time");
    default:
      return Fail(
          ErrorCode::kUnavailable, "no secure connection to " + where + ": " + line.wire.why(),
          line.wire.untrusted()
              ? "if you know who signed its certificate: `muster login URL --ca FILE`, "
                "with the PEM file of that CA"
              : "check the address: does it speak TLS, and by the name in its certificate?");
  }
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view text) {
  constexpr std::string_view kSecure = "https://";
  constexpr std::string_view kPlain = "http://";
  Endpoint out;
  if (text.starts_with('/')) {
    out.unix_path = text;
    return out;
  }
  out.tls = text.starts_with(kSecure);
  if (!out.tls && !text.starts_with(kPlain)) {
    return BadAddress(text, "it begins neither with / nor with https://");
  }
  auto rest = text.substr(out.tls ? kSecure.size() : kPlain.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ ") != std::string_view::npos) {
    return BadAddress(text, "there is more than a host and a port");
  }
  // The colons of an IPv6 address are inside brackets.
  const auto bracket = rest.starts_with('[') ? rest.find(']') : std::size_t{0};
  if (bracket == std::string_view::npos) return BadAddress(text, "its bracket is not closed");
  const auto colon = rest.find(':', bracket);
  out.host = rest.substr(0, colon);
  if (bracket > 0) out.host = rest.substr(1, bracket - 1);
  if (out.host.empty()) return BadAddress(text, "it has no host");
  out.port = out.tls ? 443 : 80;
  if (colon != std::string_view::npos) {
    const auto digits = rest.substr(colon + 1);
    const auto* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, out.port);
    if (error != std::errc{} || stop != end || out.port == 0) {
      return BadAddress(text, "its port is not a number from 1 to 65535");
    }
  }
  if (!out.tls && !IsLoopback(out.host)) {
    return BadAddress(text, "http:// is for this machine only");
  }
  return out;
}

std::string Describe(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return endpoint.unix_path;
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", endpoint.host, brackets ? "]" : "",
                     endpoint.port);
}

Result<Line> Dial(const Endpoint& endpoint, std::shared_ptr<const TlsContext>& tls,
                  int timeout_ms) {
  auto opened = endpoint.unix_path.empty() ? ConnectTcp(endpoint.host, endpoint.port, timeout_ms)
                                           : ConnectUnix(endpoint.unix_path, timeout_ms);
  if (!opened) return tl::unexpected(opened.error());
  Line out{.socket = std::move(*opened)};
  out.wire = Wire(out.socket.get());
  if (endpoint.tls && endpoint.unix_path.empty()) {
    if (auto secured = Secure(endpoint, out, tls, timeout_ms); !secured) {
      return tl::unexpected(secured.error());
    }
  }
  return out;
}

}  // namespace muster::net

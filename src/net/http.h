// Http: requests and responses as plain values, and the form of a request's target.
//
// Nothing here reads a socket or knows what a path means. A target is decoded once, on arrival:
// `path` and `query` hold what the sender meant, so "%2F" in a name is a slash like any other.
// Decoding refuses broken escapes, control characters and NUL, because paths end up in file names
// and in messages, and query keys that come twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::net {

struct Header {
  std::string name;
  std::string value;
};

// Who is at the other end of a Unix socket, as the kernel saw it when the connection was made.
struct Peer {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int32_t pid = 0;
};

// Braces behind members let callers name only those they set.
struct Request {
  std::string method = "GET";
  std::string path = "/";
  std::map<std::string, std::string> query{};
  std::vector<Header> headers{};
  std::string body{};
  // How it came, set by the server: over a Unix socket with `peer`, or over TCP with `remote`.
  std::optional<Peer> peer{};
  std::string remote{};  // the other machine's address, "10.0.0.7"

  // The first header of this name, whatever its case; null when there is none.
  const std::string* Find(std::string_view header) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers{};
  std::string body{};

  const std::string* Find(std::string_view header) const;
};

struct Target {
  std::string path;
  std::map<std::string, std::string> query;
};

Result<Target> ParseTarget(std::string_view target);

// Everything but letters, digits and "-._~" becomes %XX.
std::string PercentEncode(std::string_view text);
std::string EncodeQuery(const std::map<std::string, std::string>& query);
// The inverse of ParseTarget; slashes in the path stay slashes.
std::string EncodeTarget(std::string_view path, const std::map<std::string, std::string>& query);

}  // namespace muster::net

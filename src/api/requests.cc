#include "api/requests.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "api/tokens.h"
#include "model/fields.h"

namespace muster::api {
namespace {

constexpr std::int64_t kRememberedMs = 60'000;
constexpr std::size_t kMostRemembered = 10'000;

control::Caller LookUp(const net::Peer& peer) {
  control::Caller caller;
  caller.uid = peer.uid;
  caller.gid = peer.gid;
  caller.user = std::to_string(peer.uid);
  caller.from = "unix uid " + caller.user;
  caller.is_root = peer.uid == 0 || peer.uid == ::geteuid();
  std::vector<char> buffer(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(peer.uid, &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return caller;
  }
  caller.user = found->pw_name;
  int count = 256;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count) < 0) return caller;
  groups.resize(static_cast<std::size_t>(count));
  for (const gid_t group : groups) {
    ::group of{};
    ::group* named = nullptr;
    if (::getgrgid_r(group, &of, buffer.data(), buffer.size(), &named) == 0 && named != nullptr) {
      caller.groups.emplace_back(named->gr_name);
    }
  }
  return caller;
}

tl::unexpected<Error> Nobody(const std::string& why) {
  Error error{ErrorCode::kDenied, why, "`muster token create` on the machine itself makes one"};
  error.path = "Authorization";
  return tl::unexpected(std::move(error));
}

std::string_view CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kDenied:
      return "denied";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace

std::string Call::Text(const std::string& name) const {
  const auto found = request->query.find(name);
  return found == request->query.end() ? "" : found->second;
}

bool Call::Flag(const std::string& name) const {
  const auto text = Text(name);
  return text == "1" || text == "true";
}

std::int64_t Call::Number(const std::string& name, std::int64_t otherwise) const {
  return model::ParseWhole(Text(name)).value_or(otherwise);
}

control::Caller Accounts::Of(const net::Peer& peer, std::int64_t now_ms) {
  auto& known = known_[peer.uid];
  if (known.until_ms < now_ms) {
    known.caller = LookUp(peer);
    known.until_ms = now_ms + kRememberedMs;
  }
  control::Caller caller = known.caller;
  caller.gid = peer.gid;
  if (known_.size() > kMostRemembered) known_.clear();
  return caller;
}

Result<control::Caller> Identify(const state::State& state, const Call& call, std::int64_t now_ms) {
  const auto* header = call.request->Find("Authorization");
  if (header == nullptr) {
    if (!call.peer.user.empty()) return call.peer;
    return Nobody("this call needs a token");
  }
  constexpr std::string_view kBearer = "Bearer ";
  const auto given = header->starts_with(kBearer)
                         ? SplitToken(std::string_view(*header).substr(kBearer.size()))
                         : std::nullopt;
  if (!given) return Nobody("the Authorization header holds no token of Muster");
  const auto found = state.tokens().find(given->id);
  if (found == state.tokens().end() || !SameHash(found->second.hash, HashOf(given->secret))) {
    return Nobody("the token is not known here; it may have been revoked");
  }
  const auto& token = found->second;
  if (token.expires_ms != 0 && token.expires_ms <= now_ms) {
    return Nobody("token " + token.name + " has expired");
  }
  control::Caller caller;
  caller.user = token.user;
  caller.from = "token " + token.name + " from " + call.request->remote;
  caller.cap = token.role.empty() ? control::Role::kAdmin : control::ParseRole(token.role);
  const passwd* account = ::getpwnam(token.user.c_str());
  caller.uid = account == nullptr ? 65534 : account->pw_uid;
  caller.gid = account == nullptr ? 65534 : account->pw_gid;
  return caller;
}

int StatusOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUsage:
      return error.path == "method" ? 405 : 400;
    case ErrorCode::kNotFound:
      return error.path == "since" ? 410 : 404;
    case ErrorCode::kDenied:
      return error.path == "Authorization" ? 401 : 403;
    case ErrorCode::kInvalid:
      return 422;
    case ErrorCode::kConflict:
      return error.path == "If-Match" ? 412 : 409;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kTimeout:
      return 504;
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

void ReplyError(net::Exchange& exchange, const Error& error) {
  const int status = StatusOf(error);
  model::DocNode node = model::MapNode();
  Put(node, "title", model::TextNode(error.message));
  Put(node, "code", model::TextNode(CodeName(error.code)));
  Put(node, "status", model::NumberNode(status));
  Put(node, "hint", model::TextNode(error.hint));
  if (!error.path.empty()) Put(node, "path", model::TextNode(error.path));
  net::Response response;
  response.status = status;
  response.content_type = "application/problem+json";
  response.body = model::WriteJson(node);
  if (status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (status == 405) response.headers.push_back({"Allow", error.hint});
  exchange.Reply(std::move(response));
}

void ReplyNode(net::Exchange& exchange, const model::DocNode& node, int status,
               std::vector<net::Header> headers) {
  net::Response response;
  response.status = status;
  response.headers = std::move(headers);
  response.body = model::WriteJson(node);
  exchange.Reply(std::move(response));
}

std::string TagOf(std::uint64_t revision) { return "\"" + std::to_string(revision) + "\""; }

Result<void> CheckMatch(const Call& call, const std::string& etag) {
  const auto* wanted = call.request->Find("If-Match");
  if (wanted == nullptr || *wanted == "*" || *wanted == etag) return {};
  Error error{ErrorCode::kConflict, "it has changed since it was read",
              "read it again and decide anew"};
  error.path = "If-Match";
  return tl::unexpected(std::move(error));
}

}  // namespace muster::api

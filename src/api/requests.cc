#include "api/requests.h"

#include <unistd.h>

#include <tuple>

#include "api/tokens.h"
#include "model/fields.h"
#include "model/paths.h"

namespace muster::api {
namespace {

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

Result<control::Caller::Account> AccountOf(const Call& call) {
  const auto& [user, account] = std::tie(call.caller.user, call.caller.account);
  if (!account) {
    return Fail(ErrorCode::kDenied, "user " + user + " has no account on this machine",
                "jobs run as their user: an admin makes the account");
  }
  if (account->uid == 0 && !call.token.empty()) {
    return Fail(ErrorCode::kDenied, "a token runs nothing as root",
                "submit root's jobs on the machine itself");
  }
  if (::geteuid() != 0 && account->uid != ::geteuid() && !call.token.empty()) {
    return Fail(ErrorCode::kDenied, "this daemon is not root and runs its own user's jobs only",
                "start musterd as root to share it");
  }
  return *account;
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

net::Response ErrorResponse(const Error& error, int status) {
  model::DocNode node = model::MapNode();
  Put(node, "title", model::TextNode(error.message));
  Put(node, "code", model::TextNode(CodeName(error.code)));
  Put(node, "status", model::NumberNode(status));
  const auto describe = [](const Error& of, model::DocNode& in) {
    if (!of.hint.empty()) Put(in, "hint", model::TextNode(of.hint));
    if (!of.path.empty()) Put(in, "path", model::TextNode(of.path));
  };
  describe(error, node);
  if (status == 422 || !error.all.empty()) {
    model::DocNode list = model::ListNode();
    for (const auto& one : error.all.empty() ? std::vector<Error>{error} : error.all) {
      model::DocNode item = model::MapNode();
      Put(item, "message", model::TextNode(one.message));
      describe(one, item);
      list.children.push_back(std::move(item));
    }
    Put(node, "errors", std::move(list));
  }
  net::Response response;
  response.status = status;
  response.content_type = "application/problem+json";
  response.body = model::WriteJson(node);
  return response;
}

void ReplyError(net::Exchange& exchange, const Error& error) {
  const int status = StatusOf(error);
  auto response = ErrorResponse(error, status);
  if (status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (status == 405) response.headers.push_back({"Allow", error.hint});
  exchange.Reply(std::move(response));
}

void ReplyNode(net::Exchange& exchange, const model::DocNode& node, int status,
               std::vector<net::Header> headers) {
  ReplyJson(exchange, model::WriteJson(node), status, std::move(headers));
}

void ReplyJson(net::Exchange& exchange, std::string text, int status,
               std::vector<net::Header> headers) {
  net::Response response;
  response.status = status;
  response.headers = std::move(headers);
  response.body = std::move(text);
  exchange.Reply(std::move(response));
}

std::string TagOf(std::uint64_t revision) { return "\"" + std::to_string(revision) + "\""; }

Result<void> CheckMatch(const Call& call, const std::string& etag) {
  const auto* wanted = call.request->Find("If-Match");
  if (wanted == nullptr || (*wanted == "*" && !etag.empty())) return {};
  // One tag, or several with commas between.
  std::string_view left = *wanted;
  while (!left.empty() && !etag.empty()) {
    const auto comma = left.find(',');
    auto one = left.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one == etag) return {};
    left = comma == std::string_view::npos ? "" : left.substr(comma + 1);
  }
  Error error{ErrorCode::kConflict,
              etag.empty() ? "it is not there any more" : "it has changed since it was read",
              "read it again and decide anew"};
  error.path = "If-Match";
  return tl::unexpected(std::move(error));
}

std::string KeyOf(const Call& call) {
  const auto* key = call.request->Find("Idempotency-Key");
  const bool counts = key != nullptr && call.operation().method == "POST" && !call.dry_run();
  return counts ? *key : "";
}

std::string DigestOf(const Call& call) {
  std::string all = call.operation().id + "\n" + call.request->path + "\n";
  for (const auto& [name, value] : call.request->query) {
    all += name;
    all += '=';
    all += value;
    all += '\n';
  }
  all += HashOf(call.request->body);
  return HashOf(all).substr(0, state::RequestKeys::kDigestSize);
}

model::DocNode BodyMap(const Call& call, model::Problems& problems) {
  auto documents = model::ParseDocuments(call.request->body, problems);
  if (problems.HasErrors()) return {};
  if (documents.size() == 1 && documents[0].kind == model::DocKind::kMap) {
    return std::move(documents[0]);
  }
  problems.Error({}, "the body is not a map", "`{\"key\": \"value\"}`");
  return {};
}

}  // namespace muster::api

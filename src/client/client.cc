#include "client/client.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "client/event_reader.h"
#include "net/base64.h"
#include "net/http_client.h"
#include "net/ws_client.h"

namespace muster::client {
namespace {

constexpr std::size_t kMostShown = 200;
constexpr std::chrono::milliseconds kAskAgain(250);

// Not from our daemon, perhaps from a proxy before it: what it said, and the code of its status.
Error PlainErrorOf(const net::Response& response) {
  const auto first = response.body.find_first_not_of(" \t\r\n");
  std::string line;
  if (first != std::string::npos) {
    line = response.body.substr(first, response.body.find_first_of("\r\n", first) - first);
  }
  if (line.size() > kMostShown) line.resize(kMostShown);
  const int status = response.status;
  const auto code = status == 401 || status == 403                    ? ErrorCode::kDenied
                    : status == 404                                   ? ErrorCode::kNotFound
                    : status == 408 || status == 504                  ? ErrorCode::kTimeout
                    : status == 429 || status == 502 || status == 503 ? ErrorCode::kUnavailable
                    : status >= 400 && status < 500                   ? ErrorCode::kInvalid
                                                                      : ErrorCode::kInternal;
  return {code,
          "the server answered with status " + std::to_string(status) +
              (line.empty() ? "" : ": " + line),
          "look whether it is musterd that listens there: `muster config view --origins`"};
}

Error ErrorOf(const net::Response& response) {
  Error error{ErrorCode::kInternal,
              "the daemon answered with status " + std::to_string(response.status), ""};
  const auto problem = nlohmann::json::parse(response.body, nullptr, false);
  if (!problem.is_object()) return PlainErrorOf(response);
  // What is not of the form that was agreed on counts as not said.
  const auto text = [&problem](const char* key, const std::string& otherwise) {
    const auto found = problem.find(key);
    return found != problem.end() && found->is_string() ? found->get<std::string>() : otherwise;
  };
  error.message = text("title", error.message);
  error.hint = text("hint", "");
  const std::string code = text("code", "");
  for (const auto& [name, value] : {std::pair{"invalid", ErrorCode::kInvalid},
                                    {"usage", ErrorCode::kUsage},
                                    {"not-found", ErrorCode::kNotFound},
                                    {"denied", ErrorCode::kDenied},
                                    {"conflict", ErrorCode::kConflict},
                                    {"unavailable", ErrorCode::kUnavailable},
                                    {"timeout", ErrorCode::kTimeout}}) {
    if (code == name) error.code = value;
  }
  const auto errors = problem.find("errors");
  if (errors == problem.end() || !errors->is_array()) return error;
  for (const auto& one : *errors) {
    const auto said = [&one](const char* key) {
      const auto found = one.is_object() ? one.find(key) : one.end();
      return found != one.end() && found->is_string() ? found->get<std::string>() : "";
    };
    error.all.push_back({error.code, said("message"), said("hint"), said("path")});
  }
  return error;
}

}  // namespace

struct Client::Impl {
  std::optional<net::HttpClient> http;
  net::Endpoint endpoint{};
  Error no_address{};  // why there is none
  std::string token;
  int timeout_ms = 0;
  std::optional<Patience> patience{};
  bool answered = false;
  SystemClock clock{};
  std::optional<std::int64_t> give_up_ms{};  // while it does not answer

  std::int64_t NowMs() { return clock.MonotonicNs() / 1'000'000; }

  void Answered() {
    answered = true;
    if (std::exchange(give_up_ms, std::nullopt) && patience->on_back) patience->on_back();
  }

  // Whether it is to be asked again, after a moment.
  bool Again(const Error& error) {
    if (!patience || error.code != ErrorCode::kUnavailable) return false;
    if (!answered && !patience->known) return false;
    const auto now_ms = NowMs();
    if (!give_up_ms) give_up_ms = now_ms + patience->for_ms;
    if (now_ms >= *give_up_ms) {
      Answered();  // or not: the wait is over
      return false;
    }
    if (patience->on_wait) patience->on_wait(static_cast<int>(*give_up_ms - now_ms));
    std::this_thread::sleep_for(
        std::min(kAskAgain, std::chrono::milliseconds(*give_up_ms - now_ms)));
    return true;
  }

  net::Request Make(const char* method, const std::string& path, const Query& query) const {
    net::Request request;
    request.method = method;
    request.path = "/api/v1/" + path;
    request.query = query;
    if (!token.empty()) request.headers.push_back({"Authorization", "Bearer " + token});
    return request;
  }
};

std::string DefaultSocket() {
  const passwd* account = ::getpwuid(::geteuid());
  const std::string home = account == nullptr ? "/" : account->pw_dir;
  std::string own = home + "/.muster/musterd.sock";
  if (::geteuid() != 0 && ::access(own.c_str(), F_OK) == 0) return own;
  return "/run/muster/musterd.sock";
}

Client::Client(const Target& target) : impl_(new Impl{}) {
  impl_->token = target.token;
  impl_->timeout_ms = target.timeout_ms;
  if (target.local()) {
    std::string path = target.server;
    if (path.starts_with("unix:")) path.erase(0, 5);
    impl_->endpoint = net::Endpoint{std::move(path), "", 0};
    impl_->http.emplace(impl_->endpoint);
    return;
  }
  auto endpoint = net::ParseEndpoint(target.server);
  if (!endpoint) {
    impl_->no_address = endpoint.error();
    return;
  }
  endpoint->ca_file = target.ca;
  impl_->endpoint = std::move(*endpoint);
  impl_->http.emplace(impl_->endpoint);
}
Client::~Client() = default;

Result<Client::Answer> Client::Call(const char* method, const std::string& path, const Query& query,
                                    const std::string& body, const Extra& extra) {
  if (!impl_->http) return tl::unexpected(impl_->no_address);
  auto request = impl_->Make(method, path, query);
  request.body = body;
  if (!extra.if_match.empty()) request.headers.push_back({"If-Match", extra.if_match});
  if (!extra.idempotency_key.empty()) {
    request.headers.push_back({"Idempotency-Key", extra.idempotency_key});
  }
  for (;;) {
    auto response = impl_->http->Send(request, impl_->timeout_ms);
    if (response && response->status < 300) {
      impl_->Answered();
      const auto* tag = response->Find("ETag");
      return Answer{std::move(response->body), tag == nullptr ? "" : *tag};
    }
    auto error = response ? ErrorOf(*response) : response.error();
    if (request.method != "GET" || !impl_->Again(error)) return tl::unexpected(std::move(error));
  }
}

void Client::Persist(Patience patience) { impl_->patience = std::move(patience); }

Result<std::string> Client::Get(const std::string& path, const Query& query) {
  auto answer = Call("GET", path, query, "", {});
  if (!answer) return tl::unexpected(answer.error());
  return std::move(answer->body);
}

Result<std::string> Client::Post(const std::string& path, const Query& query,
                                 const std::string& body, const std::string& idempotency_key) {
  auto answer = Call("POST", path, query, body, {.idempotency_key = idempotency_key});
  if (!answer) return tl::unexpected(answer.error());
  return std::move(answer->body);
}

Result<std::string> Client::Delete(const std::string& path, const Query& query) {
  auto answer = Call("DELETE", path, query, "", {});
  if (!answer) return tl::unexpected(answer.error());
  return std::move(answer->body);
}

Result<std::unique_ptr<net::WsClient>> Client::Open(const std::string& path, const Query& query) {
  if (!impl_->http) return tl::unexpected(impl_->no_address);
  for (;;) {
    auto answer =
        net::WsClient::Connect(impl_->endpoint, impl_->Make("GET", path, query), impl_->timeout_ms);
    if (answer && answer->socket != nullptr) {
      impl_->Answered();
      return std::move(answer->socket);
    }
    auto error = answer ? ErrorOf(answer->refusal) : answer.error();
    if (!impl_->Again(error)) return tl::unexpected(std::move(error));
  }
}

Result<void> Client::Stream(const std::string& path, const Query& query,
                            const std::function<bool(std::string_view)>& on_bytes) {
  if (!impl_->http) return tl::unexpected(impl_->no_address);
  auto response = impl_->http->Stream(impl_->Make("GET", path, query), 0, on_bytes);
  if (!response) return tl::unexpected(response.error());
  if (response->status >= 300) return tl::unexpected(ErrorOf(*response));
  return {};
}

Result<void> Client::FollowLog(const std::string& path, Query query,
                               const std::function<bool(std::string_view)>& on_bytes) {
  if (!impl_->http) return tl::unexpected(impl_->no_address);
  const Error cut{ErrorCode::kUnavailable, "the daemon ended in the middle of the log",
                  "look whether musterd is still running"};
  for (;;) {
    bool stopped = false, ended = false;
    EventReader reader([&](const StreamEvent& event) {
      if (stopped || ended) return;
      ended = event.name == "end";
      if (ended) return;
      const auto bytes = net::FromBase64(event.data);
      if (!bytes) return;
      stopped = !on_bytes(*bytes);
      if (!event.id.empty()) query["offset"] = event.id;
    });
    auto request = impl_->Make("GET", path, query);
    request.headers.push_back({"Accept", "text/event-stream"});
    auto response = impl_->http->Stream(request, 0, [&](std::string_view bytes) {
      impl_->Answered();
      reader.Add(bytes);
      return !stopped && !ended;
    });
    if (stopped || ended) return {};
    auto error = !response ? response.error() : response->status < 300 ? cut : ErrorOf(*response);
    if (!impl_->Again(error)) return tl::unexpected(std::move(error));
  }
}

}  // namespace muster::client

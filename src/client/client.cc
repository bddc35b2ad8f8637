#include "client/client.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "net/http_client.h"

namespace muster::client {
namespace {

constexpr int kTimeoutMs = 60'000;

Error ErrorOf(const net::Response& response) {
  Error error{ErrorCode::kInternal,
              "the daemon answered with status " + std::to_string(response.status), ""};
  const auto problem = nlohmann::json::parse(response.body, nullptr, false);
  if (!problem.is_object()) return error;
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
  return error;
}

net::Request MakeRequest(const char* method, const std::string& path, const Client::Query& query) {
  net::Request request;
  request.method = method;
  request.path = "/api/v1/" + path;
  request.query = query;
  return request;
}

}  // namespace

struct Client::Impl {
  net::HttpClient http;
};

std::string DefaultSocket() {
  if (const char* given = std::getenv("MUSTER_DAEMON"); given != nullptr && *given != '\0') {
    return given;
  }
  const passwd* account = ::getpwuid(::geteuid());
  const std::string home = account == nullptr ? "/" : account->pw_dir;
  std::string own = home + "/.muster/musterd.sock";
  if (::geteuid() != 0 && ::access(own.c_str(), F_OK) == 0) return own;
  return "/run/muster/musterd.sock";
}

Client::Client(std::string socket)
    : impl_(new Impl{net::HttpClient(net::Endpoint{std::move(socket), "", 0})}) {}
Client::~Client() = default;

Result<std::string> Client::Get(const std::string& path, const Query& query) {
  auto response = impl_->http.Send(MakeRequest("GET", path, query), kTimeoutMs);
  if (!response) return tl::unexpected(response.error());
  if (response->status >= 300) return tl::unexpected(ErrorOf(*response));
  return std::move(response->body);
}

Result<std::string> Client::Post(const std::string& path, const Query& query,
                                 const std::string& body, const std::string& idempotency_key) {
  auto request = MakeRequest("POST", path, query);
  request.body = body;
  if (!idempotency_key.empty()) request.headers.push_back({"Idempotency-Key", idempotency_key});
  auto response = impl_->http.Send(request, kTimeoutMs);
  if (!response) return tl::unexpected(response.error());
  if (response->status >= 300) return tl::unexpected(ErrorOf(*response));
  return std::move(response->body);
}

Result<void> Client::Stream(const std::string& path, const Query& query,
                            const std::function<bool(std::string_view)>& on_bytes) {
  auto response = impl_->http.Stream(MakeRequest("GET", path, query), 0, on_bytes);
  if (!response) return tl::unexpected(response.error());
  if (response->status >= 300) return tl::unexpected(ErrorOf(*response));
  return {};
}

}  // namespace muster::client

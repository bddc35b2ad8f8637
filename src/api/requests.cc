#include "api/requests.h"

#include <pwd.h>

#include "model/fields.h"

namespace muster::api {
namespace {

constexpr std::string_view kPrefix = "/api/v1/";

std::string NameOfUser(std::uint32_t uid) {
  std::vector<char> buffer(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(uid);
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

Call MakeCall(net::Request request, std::shared_ptr<net::Exchange> exchange) {
  Call call;
  call.request = std::make_shared<const net::Request>(std::move(request));
  call.exchange = std::move(exchange);
  std::string_view path = call.request->path;
  if (path.starts_with(kPrefix)) path.remove_prefix(kPrefix.size());
  while (!path.empty()) {
    const auto slash = path.find('/');
    if (slash != 0) call.words.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  if (call.request->peer) {
    call.uid = call.request->peer->uid;
    call.gid = call.request->peer->gid;
    call.user = NameOfUser(call.uid);
  }
  return call;
}

}  // namespace muster::api

#include "net/head.h"

#include <algorithm>
#include <cstddef>

namespace muster::net {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool Same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

struct Found {
  int count = 0;
  std::string_view value;  // of the first
};

Found Look(const Request& request, std::string_view name) {
  Found out;
  for (const auto& header : request.headers) {
    if (Same(header.name, name) && ++out.count == 1) out.value = Trim(header.value);
  }
  return out;
}

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "example.org:8080" and the port that stands for the scheme when there is none.
struct Place {
  std::string_view name;
  std::string_view port;
};

Place Split(std::string_view host) {
  const auto bracket = host.starts_with('[') ? host.find(']') : std::size_t{0};
  const auto colon = bracket == std::string_view::npos ? bracket : host.find(':', bracket);
  if (colon == std::string_view::npos) return {.name = host, .port = {}};
  return {.name = host.substr(0, colon), .port = host.substr(colon + 1)};
}

bool Among(const std::vector<std::string>& names, std::string_view name) {
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  return std::any_of(names.begin(), names.end(),
                     [name](const std::string& known) { return Same(known, name); });
}

// The page is ours when it came from the host that it asks now, or from one of our names.
bool IsOurPage(std::string_view origin, std::string_view host, const HeadRules& rules) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kSecure = "https://";
  const bool secure = origin.starts_with(kSecure);
  if (!secure && !origin.starts_with(kPlain)) return false;
  const std::string_view standard = secure ? "443" : "80";
  const Place page = Split(origin.substr(secure ? kSecure.size() : kPlain.size()));
  const Place asked = Split(host);
  if (page.name.empty()) return false;
  const auto port = [standard](const Place& place) {
    return place.port.empty() ? standard : place.port;
  };
  return (Same(page.name, asked.name) && port(page) == port(asked)) ||
         Among(rules.names, page.name);
}

}  // namespace

bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (Same(Trim(list.substr(0, comma)), word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::optional<Refusal> Objection(const Request& request, const HeadRules& rules) {
  const auto length = Look(request, "Content-Length");
  const auto coding = Look(request, "Transfer-Encoding");
  const auto host = Look(request, "Host");
  const auto expect = Look(request, "Expect");
  const auto origin = Look(request, "Origin");
  if (length.count > 1 || (length.count == 1 && !IsNumber(length.value))) {
    return Refusal{400, "Content-Length must be one number, once"};
  }
  if (coding.count > 0 && length.count > 0) {
    return Refusal{400, "Content-Length and Transfer-Encoding exclude each other"};
  }
  if (coding.count > 1 || (coding.count == 1 && !Same(coding.value, "chunked"))) {
    return Refusal{400, "the only Transfer-Encoding is chunked, once"};
  }
  if (coding.count > 0 && !rules.chunks) return Refusal{400, "HTTP/1.0 knows no chunks"};
  if (host.count > 1) return Refusal{400, "there is more than one Host"};
  if (Look(request, "Authorization").count > 1) {
    return Refusal{400, "there is more than one Authorization"};
  }
  if (expect.count > 0 && !Same(expect.value, "100-continue")) {
    return Refusal{417, "only 100-continue may be expected"};
  }
  if (!rules.names.empty() && !Among(rules.names, Split(host.value).name)) {
    return Refusal{421, "this server is not known by the name in Host"};
  }
  if (origin.count > 0 && (origin.count > 1 || !IsOurPage(origin.value, host.value, rules))) {
    return Refusal{403, "pages of other sites may not ask this server"};
  }
  return std::nullopt;
}

const std::string* WebSocketKey(const Request& request) {
  constexpr std::size_t kKeySize = 24;  // 16 bytes in base64
  const auto* const key = request.Find("Sec-WebSocket-Key");
  const bool asked = request.method == "GET" &&
                     HasWord(Look(request, "Upgrade").value, "websocket") &&
                     HasWord(Look(request, "Connection").value, "upgrade") &&
                     Look(request, "Sec-WebSocket-Version").value == "13";
  return asked && key != nullptr && key->size() == kKeySize ? key : nullptr;
}

}  // namespace muster::net

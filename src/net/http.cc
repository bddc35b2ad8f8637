#include "net/http.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace muster::net {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

const std::string* FindHeader(const std::vector<Header>& headers, std::string_view name) {
  const auto same = [name](const Header& header) {
    return std::equal(header.name.begin(), header.name.end(), name.begin(), name.end(),
                      [](char a, char b) { return Lower(a) == Lower(b); });
  };
  const auto found = std::find_if(headers.begin(), headers.end(), same);
  return found == headers.end() ? nullptr : &found->value;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = Lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool IsUnreserved(char c) {
  const char lower = Lower(c);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

void AppendEncoded(std::string& out, std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (IsUnreserved(c) || (keep_slashes && c == '/')) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
}

tl::unexpected<Error> BadTarget(const std::string& why) {
  return Fail(ErrorCode::kInvalid, "the request's target " + why,
              "percent-encode what is not a letter or a digit");
}

// In a query "+" is a space: that is how browsers send forms.
Result<std::string> Decode(std::string_view text, bool is_query) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && is_query) {
      c = ' ';
    } else if (c == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = high < 0 ? -1 : HexDigit(text[i + 2]);
      if (low < 0) return BadTarget("has a % without two hexadecimal digits behind it");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (IsControl(c)) return BadTarget("holds a control character");
    out += c;
  }
  return out;
}

}  // namespace

const std::string* Request::Find(std::string_view header) const {
  return FindHeader(headers, header);
}

const std::string* Response::Find(std::string_view header) const {
  return FindHeader(headers, header);
}

Result<Target> ParseTarget(std::string_view target) {
  // A client that takes us for a proxy sends the whole address.
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with(kScheme)) {
    const auto slash = target.find('/', kScheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (!target.starts_with('/')) return BadTarget("does not begin with a slash");
  if (target.find_first_of(" #") != std::string_view::npos) {
    return BadTarget("holds a space or a #");
  }
  const auto mark = target.find('?');
  Target out;
  auto path = Decode(target.substr(0, mark), false);
  if (!path) return tl::unexpected(path.error());
  out.path = std::move(*path);
  auto rest = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const auto pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    auto key = Decode(pair.substr(0, equals), true);
    if (!key) return tl::unexpected(key.error());
    auto value = Decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!value) return tl::unexpected(value.error());
    const auto added = out.query.emplace(std::move(*key), std::move(*value));
    if (!added.second) return BadTarget("gives \"" + added.first->first + "\" twice");
  }
  return out;
}

std::string PercentEncode(std::string_view text) {
  std::string out;
  AppendEncoded(out, text, false);
  return out;
}

std::string EncodeQuery(const std::map<std::string, std::string>& query) {
  std::string out;
  for (const auto& [key, value] : query) {
    if (!out.empty()) out += '&';
    AppendEncoded(out, key, false);
    out += '=';
    AppendEncoded(out, value, false);
  }
  return out;
}

std::string EncodeTarget(std::string_view path, const std::map<std::string, std::string>& query) {
  std::string out;
  if (!path.starts_with('/')) out += '/';
  AppendEncoded(out, path, true);
  if (!query.empty()) out += '?' + EncodeQuery(query);
  return out;
}

}  // namespace muster::net

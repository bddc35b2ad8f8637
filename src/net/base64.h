// Base64: bytes as text of one line, for what may be no UTF-8 inside of a text format, and back.
//
// The alphabet of RFC 4648 with its padding, by OpenSSL. What is not written that way is no text of
// ours: another length, another letter, or padding before the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::net {

std::string ToBase64(std::string_view bytes);
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace muster::net

// Hex: bytes as hexadecimal digits, small letters, and back.
//
// For ids, hashes and cursors, which travel in addresses and headers as they are. What is no pair
// of digits is no text of ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

std::string ToHex(std::string_view bytes);
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace muster

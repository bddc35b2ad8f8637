#include "base/hex.h"

#include <charconv>

namespace muster {

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<std::string> FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (; !hex.empty(); hex.remove_prefix(2)) {
    unsigned value = 0;
    const auto [end, fault] = std::from_chars(hex.data(), hex.data() + 2, value, 16);
    if (fault != std::errc() || end != hex.data() + 2) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace muster

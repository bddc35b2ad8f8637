#include "api/tokens.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/hex.h"

namespace muster::api {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::size_t kIdBytes = 6;
constexpr std::size_t kSecretBytes = 32;

std::string Hex(std::span<const unsigned char> bytes) {
  return ToHex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

template <std::size_t Size>
std::string RandomHex() {
  std::array<unsigned char, Size> bytes{};
  const int done = RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
  MUSTER_CHECK(done == 1, "the system has randomness");
  return Hex(bytes);
}

bool IsHex(std::string_view text) { return text.find_first_not_of(kHex) == std::string_view::npos; }

}  // namespace

Token NewToken() { return {RandomHex<kIdBytes>(), RandomHex<kSecretBytes>()}; }

std::optional<Token> SplitToken(std::string_view text) {
  constexpr std::string_view kPrefix = "mst_";
  constexpr std::size_t id = 2 * kIdBytes, secret = 2 * kSecretBytes;
  if (text.size() != kPrefix.size() + id + 1 + secret || !text.starts_with(kPrefix)) return {};
  text.remove_prefix(kPrefix.size());
  if (text[id] != '_' || !IsHex(text.substr(0, id)) || !IsHex(text.substr(id + 1))) return {};
  return Token{std::string(text.substr(0, id)), std::string(text.substr(id + 1))};
}

std::string HashOf(std::string_view secret) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), hash.data());
  return Hex(hash);
}

bool SameHash(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace muster::api

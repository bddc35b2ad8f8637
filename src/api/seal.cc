#include "api/seal.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <charconv>
#include <memory>
#include <vector>

#include "base/check.h"

namespace muster::api {
namespace {

constexpr std::size_t kNonce = 12, kTag = 16, kMostBytes = 4096;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Sealer::Sealer() {
  const int done = RAND_bytes(key_.data(), static_cast<int>(key_.size()));
  MUSTER_CHECK(done == 1, "the system has randomness");
}

// Nonce, cipher text and tag, in hexadecimal digits.
std::string Sealer::Seal(std::string_view text) const {
  std::vector<unsigned char> out(kNonce + text.size() + kTag);
  const Context context(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  const bool done =
      RAND_bytes(out.data(), kNonce) == 1 &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), out.data()) == 1 &&
      EVP_EncryptUpdate(context.get(), out.data() + kNonce, &size, Bytes(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), out.data() + kNonce + size, &last) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTag,
                          out.data() + kNonce + text.size()) == 1;
  MUSTER_CHECK(done, "OpenSSL has AES-256-GCM");
  std::string hex;
  for (const unsigned char byte : out) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::optional<std::string> Sealer::Open(std::string_view sealed) const {
  if (sealed.size() % 2 != 0 || sealed.size() / 2 < kNonce + kTag ||
      sealed.size() / 2 > kMostBytes) {
    return std::nullopt;
  }
  std::vector<unsigned char> in;
  for (; !sealed.empty(); sealed.remove_prefix(2)) {
    unsigned value = 0;
    const auto [end, fault] = std::from_chars(sealed.data(), sealed.data() + 2, value, 16);
    if (fault != std::errc() || end != sealed.data() + 2) return std::nullopt;
    in.push_back(static_cast<unsigned char>(value));
  }
  const std::size_t length = in.size() - kNonce - kTag;
  std::string text(length, '\0');
  const Context context(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  auto* to = reinterpret_cast<unsigned char*>(text.data());
  const bool good =
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), in.data()) == 1 &&
      EVP_DecryptUpdate(context.get(), to, &size, in.data() + kNonce, static_cast<int>(length)) ==
          1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag, in.data() + kNonce + length) ==
          1 &&
      EVP_DecryptFinal_ex(context.get(), to + size, &last) == 1;
  return good ? std::optional(text) : std::nullopt;
}

}  // namespace muster::api

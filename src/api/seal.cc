#include "api/seal.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <memory>

#include "base/check.h"
#include "base/hex.h"

namespace muster::api {
namespace {

constexpr std::size_t kNonce = 12, kTag = 16, kMostBytes = 4096;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
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
  std::string sealed(kNonce + text.size() + kTag, '\0');
  auto* out = Bytes(sealed);
  const Context context(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  const bool done =
      RAND_bytes(out, kNonce) == 1 &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), out) == 1 &&
      EVP_EncryptUpdate(context.get(), out + kNonce, &size, Bytes(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), out + kNonce + size, &last) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTag, out + kNonce + text.size()) ==
          1;
  MUSTER_CHECK(done, "OpenSSL has AES-256-GCM");
  return ToHex(sealed);
}

std::optional<std::string> Sealer::Open(std::string_view sealed) const {
  auto bytes = FromHex(sealed.substr(0, 2 * kMostBytes));
  if (!bytes || bytes->size() < kNonce + kTag || sealed.size() > 2 * kMostBytes) {
    return std::nullopt;
  }
  auto* in = Bytes(*bytes);
  const std::size_t length = bytes->size() - kNonce - kTag;
  std::string text(length, '\0');
  const Context context(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  const bool good =
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), in) == 1 &&
      EVP_DecryptUpdate(context.get(), Bytes(text), &size, in + kNonce, static_cast<int>(length)) ==
          1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag, in + kNonce + length) == 1 &&
      EVP_DecryptFinal_ex(context.get(), Bytes(text) + size, &last) == 1;
  return good ? std::optional(text) : std::nullopt;
}

}  // namespace muster::api

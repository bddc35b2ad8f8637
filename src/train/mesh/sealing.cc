#include "train/mesh/sealing.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace muster::train {
namespace {

const unsigned char* Raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* Raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* Raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

constexpr std::size_t kPiece = std::size_t{1} << 30U;  // lengths are int there

using Nonce = std::array<unsigned char, 12>;
Nonce NonceOf(std::uint64_t number) {
  Nonce nonce{};
  std::memcpy(nonce.data() + 4, &number, sizeof number);
  return nonce;
}

}  // namespace

Hash NewNonce() {
  Hash nonce{};
  MUSTER_CHECK(RAND_bytes(Raw(nonce.data()), static_cast<int>(nonce.size())) == 1,
               "the system has randomness");
  return nonce;
}

Hash ProofOf(std::string_view secret, std::string_view role,
             std::span<const std::byte> transcript) {
  std::string text(role);
  text.append(reinterpret_cast<const char*>(transcript.data()), transcript.size());
  Hash out{};
  unsigned int size = 0;
  const auto* done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), Raw(text),
                          text.size(), Raw(out.data()), &size);
  const bool made = done != nullptr && size == out.size();
  MUSTER_CHECK(made, "HMAC-SHA256 is there");
  return out;
}

bool SameProof(const Hash& a, const Hash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Hash KeyOf(std::string_view secret, std::span<const std::byte> transcript, std::string_view use) {
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr), EVP_PKEY_CTX_free);
  Hash key{};
  std::size_t size = key.size();
  const bool done =
      context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
      EVP_PKEY_CTX_set1_hkdf_salt(context.get(), Raw(transcript.data()),
                                  static_cast<int>(transcript.size())) == 1 &&
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), Raw(secret), static_cast<int>(secret.size())) ==
          1 &&
      EVP_PKEY_CTX_add1_hkdf_info(context.get(), Raw(use), static_cast<int>(use.size())) == 1 &&
      EVP_PKEY_derive(context.get(), Raw(key.data()), &size) == 1;
  const bool made = done && size == key.size();
  MUSTER_CHECK(made, "HKDF-SHA256 is there");
  return key;
}

struct Sealer::Cipher {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  Hash key{};
  ~Cipher() {
    EVP_CIPHER_CTX_free(context);
    OPENSSL_cleanse(key.data(), key.size());
  }
};

Sealer::Sealer(const Hash& key) : cipher_(std::make_unique<Cipher>()) {
  MUSTER_CHECK(cipher_->context != nullptr, "there is memory for a cipher");
  cipher_->key = key;
}
Sealer::~Sealer() = default;
Sealer::Sealer(Sealer&&) noexcept = default;

std::array<std::byte, kSealBytes> Sealer::Seal(std::span<const std::byte> header,
                                               std::span<const std::byte> plain, std::byte* into) {
  auto* context = cipher_->context;
  const Nonce nonce = NonceOf(number_++);
  int written = 0;
  bool good = EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nullptr, Raw(cipher_->key.data()),
                                 nonce.data()) == 1 &&
              EVP_EncryptUpdate(context, nullptr, &written, Raw(header.data()),
                                static_cast<int>(header.size())) == 1;
  for (std::size_t at = 0; good && at < plain.size(); at += kPiece) {
    const std::size_t count = std::min(kPiece, plain.size() - at);
    good = EVP_EncryptUpdate(context, Raw(into + at), &written, Raw(plain.data() + at),
                             static_cast<int>(count)) == 1;
  }
  std::array<std::byte, kSealBytes> seal{};
  std::array<unsigned char, 16> rest{};
  good = good && EVP_EncryptFinal_ex(context, rest.data(), &written) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kSealBytes, seal.data()) == 1;
  MUSTER_CHECK(good, "AES-256-GCM seals");
  return seal;
}

bool Sealer::Open(std::span<const std::byte> header, std::span<std::byte> bytes,
                  const std::array<std::byte, kSealBytes>& seal) {
  auto* context = cipher_->context;
  const Nonce nonce = NonceOf(number_++);
  int written = 0;
  bool good = EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nullptr, Raw(cipher_->key.data()),
                                 nonce.data()) == 1 &&
              EVP_DecryptUpdate(context, nullptr, &written, Raw(header.data()),
                                static_cast<int>(header.size())) == 1;
  for (std::size_t at = 0; good && at < bytes.size(); at += kPiece) {
    const std::size_t count = std::min(kPiece, bytes.size() - at);
    good = EVP_DecryptUpdate(context, Raw(bytes.data() + at), &written, Raw(bytes.data() + at),
                             static_cast<int>(count)) == 1;
  }
  std::array<unsigned char, 16> rest{};
  auto copy = seal;
  return good && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kSealBytes, copy.data()) == 1 &&
         EVP_DecryptFinal_ex(context, rest.data(), &written) == 1;
}

}  // namespace muster::train

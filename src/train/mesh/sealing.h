// Sealing: what the secret of the job is used for: proofs of knowing it, and keys made from it.
//
// HMAC-SHA256 for proofs, HKDF-SHA256 for keys, AES-256-GCM for frames with their number as nonce:
// a key is used for one direction of one connection, so no nonce comes twice. There is no forward
// secrecy: who learns the secret can read recordings of earlier connections.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace muster::train {

constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kSealBytes = 16;
using Hash = std::array<std::byte, kHashBytes>;

Hash NewNonce();
Hash ProofOf(std::string_view secret, std::string_view role, std::span<const std::byte> transcript);
bool SameProof(const Hash& a, const Hash& b);  // in constant time
Hash KeyOf(std::string_view secret, std::span<const std::byte> transcript, std::string_view use);

// One direction. What is sealed is opened in its order: nothing can be left out or said again.
class Sealer {
 public:
  explicit Sealer(const Hash& key);
  ~Sealer();
  Sealer(Sealer&&) noexcept;
  Sealer& operator=(Sealer&&) = delete;

  // Writes as many bytes as it reads; `into` may be `plain`. Without any, it seals the header.
  std::array<std::byte, kSealBytes> Seal(std::span<const std::byte> header,
                                         std::span<const std::byte> plain, std::byte* into);
  // In place; false: somebody changed it.
  bool Open(std::span<const std::byte> header, std::span<std::byte> bytes,
            const std::array<std::byte, kSealBytes>& seal);
  void Skip() { ++number_; }  // what is thrown away unread

 private:
  struct Cipher;
  std::unique_ptr<Cipher> cipher_;
  std::uint64_t number_ = 0;
};

}  // namespace muster::train

// StoreMessage: what a TcpStore asks a StoreServer, and what it is told, as bytes.
//
// A question that is not as it should be is answered with an error, never guessed at: keys become
// names of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "train/mesh/handshake.h"

namespace muster::train {

inline constexpr std::size_t kMostKeyBytes = 100;
inline constexpr std::size_t kMostValueBytes = std::size_t{4} << 20U;

// Whom both sides take a store for: no worker has this id, and no job this name.
inline constexpr MemberId kStoreId = 0;
inline constexpr MemberId kStoreClientId = 1;
Identity StoreIdentity(MemberId id, std::string secret);

struct StoreQuestion {
  enum class Kind : std::uint8_t { kClaim = 1, kWrite, kRead };
  Kind kind = Kind::kRead;
  std::string key, value;
};

// The value that stands: always after a claim, never after a write.
using StoreAnswer = Result<std::optional<std::string>>;

// An error: nothing that could be asked.
Result<std::string> Encode(const StoreQuestion& question);
Result<StoreQuestion> DecodeQuestion(std::string_view bytes);

std::string Encode(const StoreAnswer& answer);
StoreAnswer DecodeAnswer(std::string_view bytes);

}  // namespace muster::train

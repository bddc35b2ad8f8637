#include "train/members/store_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::train {
namespace {

enum class Outcome : char { kValue = 1, kNothing, kError };

// Not a name that leads out of the folder, nor one of a file that the folder keeps for itself.
bool IsKey(std::string_view key) {
  if (key.empty() || key.size() > kMostKeyBytes || key.starts_with('.')) return false;
  return std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

tl::unexpected<Error> NoAnswer() {
  return Fail(ErrorCode::kInvalid, "the store answers with something that is no answer",
              "run the store and all workers of a job with one version of Muster");
}

}  // namespace

Identity StoreIdentity(MemberId id, std::string secret) {
  Identity out;
  out.id = id;
  out.job = "the store of a job";
  out.secret = std::move(secret);
  out.encrypt = true;
  out.peers = "store";
  return out;
}

// One byte for the kind, one for the length of the key, the key, the value.
Result<std::string> Encode(const StoreQuestion& question) {
  if (!IsKey(question.key)) {
    return Fail(ErrorCode::kInvalid, fmt::format("\"{}\" is no key of a store", question.key));
  }
  if (question.value.size() > kMostValueBytes) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("a value of {} bytes is too large for a store, which takes {}",
                            question.value.size(), kMostValueBytes));
  }
  std::string out;
  out.reserve(2 + question.key.size() + question.value.size());
  out += static_cast<char>(question.kind);
  out += static_cast<char>(question.key.size());
  out += question.key;
  out += question.value;
  return out;
}

Result<StoreQuestion> DecodeQuestion(std::string_view bytes) {
  const auto wrong = Fail(ErrorCode::kInvalid, "this is nothing that can be asked of a store");
  if (bytes.size() < 2) return wrong;
  const auto kind = static_cast<StoreQuestion::Kind>(bytes[0]);
  if (kind < StoreQuestion::Kind::kClaim || kind > StoreQuestion::Kind::kRead) return wrong;
  const auto key_bytes = static_cast<std::size_t>(static_cast<unsigned char>(bytes[1]));
  bytes.remove_prefix(2);
  if (key_bytes > bytes.size() || !IsKey(bytes.substr(0, key_bytes))) return wrong;
  if (bytes.size() - key_bytes > kMostValueBytes) return wrong;
  return StoreQuestion{kind, std::string(bytes.substr(0, key_bytes)),
                       std::string(bytes.substr(key_bytes))};
}

// One byte for the outcome, then the value, or the code of the error and its message.
std::string Encode(const StoreAnswer& answer) {
  std::string out;
  if (!answer) {
    out += static_cast<char>(Outcome::kError);
    out += static_cast<char>(answer.error().code);
    return out + answer.error().message;
  }
  out += static_cast<char>(*answer ? Outcome::kValue : Outcome::kNothing);
  return out + answer->value_or("");
}

StoreAnswer DecodeAnswer(std::string_view bytes) {
  if (bytes.empty()) return NoAnswer();
  const auto rest = bytes.substr(1);
  switch (static_cast<Outcome>(bytes[0])) {
    case Outcome::kValue:
      return std::string(rest);
    case Outcome::kNothing:
      return std::nullopt;
    case Outcome::kError:
      if (rest.empty() || rest[0] < 0 || rest[0] > static_cast<char>(ErrorCode::kInternal)) {
        return NoAnswer();
      }
      return Fail(static_cast<ErrorCode>(rest[0]),
                  fmt::format("the store says: {}", rest.substr(1)));
  }
  return NoAnswer();
}

}  // namespace muster::train

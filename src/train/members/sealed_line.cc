#include "train/members/sealed_line.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"

namespace muster::train {
namespace {

struct Head {
  std::uint32_t bytes = 0;  // of the message
  std::array<std::byte, kSealBytes> seal{};
};
static_assert(sizeof(Head) == sizeof(std::uint32_t) + kSealBytes);

constexpr std::size_t kPieceBytes = 65536;

std::span<const std::byte> SizeOf(const Head& head) {
  return std::as_bytes(std::span(&head.bytes, 1));
}

}  // namespace

void SealedLine::Put(std::string_view message) {
  const bool fits = !message.empty() && message.size() <= kMostBytes;
  MUSTER_CHECK(fits, "whoever sends a message holds to its size");
  Head head;
  head.bytes = static_cast<std::uint32_t>(message.size());
  const std::size_t at = out_.size();
  out_.resize(at + sizeof head + message.size());
  head.seal = trusted_.seal->Seal(SizeOf(head), std::as_bytes(std::span(message)),
                                  reinterpret_cast<std::byte*>(out_.data() + at + sizeof head));
  std::memcpy(out_.data() + at, &head, sizeof head);
}

SealedLine::Step SealedLine::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t count =
        ::send(fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return Step::kMore;
    if (count < 0) return Step::kOver;
    sent_ += static_cast<std::size_t>(count);
  }
  out_.clear();
  sent_ = 0;
  return Step::kDone;
}

SealedLine::Step SealedLine::Read(std::string& message) {
  while (true) {
    Head head;
    std::size_t wanted = sizeof head;
    if (in_.size() >= sizeof head) {
      std::memcpy(&head, in_.data(), sizeof head);
      if (head.bytes == 0 || head.bytes > kMostBytes) return Step::kOver;
      wanted += head.bytes;
    }
    if (in_.size() == wanted) {
      message = in_.substr(sizeof head);
      in_.clear();
      const auto bytes = std::as_writable_bytes(std::span(message));
      return trusted_.open->Open(SizeOf(head), bytes, head.seal) ? Step::kDone : Step::kOver;
    }
    std::array<char, kPieceBytes> piece;
    const ssize_t count =
        ::recv(fd(), piece.data(), std::min(piece.size(), wanted - in_.size()), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return Step::kMore;
    if (count <= 0) return Step::kOver;
    in_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace muster::train

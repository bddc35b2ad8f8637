#include "shim/peer.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "contract/door.h"

namespace muster::shim {

using contract::FrameKind;

void Peer::AddTo(std::vector<pollfd>& polled, bool takes) const {
  int events = takes ? POLLIN : 0;
  if (!frames_.empty()) events |= POLLOUT;
  polled.push_back({socket_.get(), static_cast<short>(events), 0});
}

bool Peer::Receive() {
  std::array<char, 16'384> block;
  const auto size = recv(socket_.get(), block.data(), block.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  gone_ = gone_ || size <= 0;
  if (size <= 0) return false;
  const std::string_view bytes(block.data(), static_cast<std::size_t>(size));
  if (finishing_) return true;
  if (has_line_) {
    reader_.Add(bytes);
  } else {
    line_ += bytes;
  }
  return true;
}

void Peer::NoticeHangUp() {
  pollfd state{socket_.get(), 0, 0};
  if (poll(&state, 1, 0) > 0) gone_ = true;
}

Result<std::optional<std::string>> Peer::Line() {
  const auto end = line_.find('\n');
  if (std::min(end, line_.size()) >= contract::kLongestRequest) {
    return Fail(ErrorCode::kInvalid, "this request is too long");
  }
  if (end == std::string::npos) return std::nullopt;
  has_line_ = true;
  reader_.Add(std::string_view(line_).substr(end + 1));
  line_.resize(end);
  return std::exchange(line_, {});
}

Result<std::optional<contract::Frame>> Peer::Next() { return reader_.Next(); }

void Peer::Send(FrameKind kind, std::string_view bytes) {
  if (finishing_ || gone_) return;
  do {
    const auto piece = bytes.substr(0, contract::kLargestPayload);
    unsent_ += frames_.emplace_back(contract::EncodeFrame(kind, piece)).size();
    bytes.remove_prefix(piece.size());
  } while (!bytes.empty());
  Push();
}

void Peer::Finish(FrameKind kind, std::string_view bytes) {
  Send(kind, bytes.substr(0, contract::kLargestPayload));
  finishing_ = true;
}

void Peer::Drop(std::string_view why) {
  while (frames_.size() > (sent_ > 0 ? 1U : 0U)) {
    unsent_ -= frames_.back().size();
    frames_.pop_back();
  }
  Finish(FrameKind::kFault, why);
}

void Peer::Push() {
  while (!frames_.empty() && !gone_) {
    const auto& frame = frames_.front();
    const auto size = send(socket_.get(), frame.data() + sent_, frame.size() - sent_,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size < 0) {
      gone_ = true;
      return;
    }
    sent_ += static_cast<std::size_t>(size);
    unsent_ -= static_cast<std::size_t>(size);
    if (sent_ < frame.size()) continue;
    frames_.pop_front();
    sent_ = 0;
  }
}

}  // namespace muster::shim

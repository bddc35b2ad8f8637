#include "train/run/shim_line.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace muster::train {

namespace {

constexpr int kVersion = 1;

// Of connecting and of reading; 0: however long it takes. Nothing else waits.
void SetPatience(int fd, std::int64_t ms) {
  const timeval most{ms / 1000, ms % 1000 * 1000};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
}

}  // namespace

Result<std::unique_ptr<ShimLine>> ShimLine::Open(const std::string& socket, Orders orders,
                                                 std::int64_t timeout_ms) {
  const auto failed = [&socket](const std::string& why) {
    return Fail(ErrorCode::kUnavailable, "the shim at " + socket + " does not answer: " + why,
                "MUSTER_SOCKET is set by Muster; without it this program runs by itself");
  };
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return failed("the path is too long");
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed(std::strerror(errno));
  std::unique_ptr<ShimLine> line(new ShimLine(fd, orders));
  SetPatience(fd, timeout_ms);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed(std::strerror(errno));
  }
  line->Say(contract::Hello{kVersion, ::getpid()});
  const auto answer = line->NextLine();
  if (!answer) return failed(answer.error().message);
  const auto told = contract::DecodeTold(*answer);
  if (!told) return tl::unexpected(told.error());
  if (!std::holds_alternative<contract::Welcome>(*told)) return failed("it speaks another version");
  line->welcome_ = std::get<contract::Welcome>(*told);
  SetPatience(fd, 0);
  line->thread_ = std::thread([self = line.get()] { self->Listen(); });
  return line;
}

ShimLine::~ShimLine() {
  ::shutdown(fd_, SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  ::close(fd_);
}

void ShimLine::Say(const contract::Said& said) {
  const std::string text = contract::Encode(said);
  const std::lock_guard lock(saying_);
  unsaid_.erase(0, Send(unsaid_));
  if (!unsaid_.empty()) return;
  const auto sent = Send(text);
  if (sent > 0) unsaid_ = text.substr(sent);
}

std::size_t ShimLine::Send(std::string_view text) const {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const auto count =
        ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    sent += static_cast<std::size_t>(count);
  }
  return sent;
}

Result<std::string> ShimLine::NextLine() {
  while (true) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> bytes{};
    const auto count = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return Fail(ErrorCode::kTimeout, "it is silent");
    if (count <= 0) return Fail(ErrorCode::kUnavailable, "the connection was closed");
    unread_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

void ShimLine::Listen() {
  while (const auto line = NextLine()) {
    const auto told = contract::DecodeTold(*line);
    if (!told) continue;  // of a newer version: it says nothing to this one
    if (Leaves(*told)) orders_.leave = true;
    if (std::holds_alternative<contract::AskCheckpoint>(*told)) ++orders_.checkpoints;
  }
}

bool ShimLine::Leaves(const contract::Told& told) const {
  if (const auto* resize = std::get_if<contract::Resize>(&told)) {
    return std::ranges::none_of(resize->members, [this](const contract::Member& member) {
      return member.rank == welcome_.rank;
    });
  }
  return std::holds_alternative<contract::Leave>(told) ||
         std::holds_alternative<contract::Stop>(told);
}

}  // namespace muster::train

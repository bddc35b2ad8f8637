#include "cli/keyboard.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "client/tunnel.h"

namespace muster::cli {

Keyboard::Keyboard(bool terminal, std::function<int(char)> leave)
    : terminal_(terminal), leave_(std::move(leave)) {
  if (terminal_) terminal_ = ::pipe2(stop_.data(), O_CLOEXEC) == 0;
}

Keyboard::~Keyboard() {
  Restore();
  if (!terminal_) return;
  ::close(stop_[0]);
  ::close(stop_[1]);
}

void Keyboard::Watch() {
  if (!terminal_ || reader_.joinable()) return;
  MakeRaw();
  reader_ = std::thread([this] { Read(); });
}

void Keyboard::Release() {
  Stop();
  MakeRaw();
}

void Keyboard::Restore() {
  Stop();
  if (std::exchange(raw_, false)) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Keyboard::Stop() {
  if (!reader_.joinable()) return;
  [[maybe_unused]] const auto told = ::write(stop_[1], "s", 1);
  reader_.join();
  char taken = 0;
  [[maybe_unused]] const auto read = ::read(stop_[0], &taken, 1);
}

void Keyboard::MakeRaw() {
  if (!terminal_ || raw_ || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios raw = before_;
  ::cfmakeraw(&raw);
  raw_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void Keyboard::Read() {
  for (;;) {
    std::array<pollfd, 2> polled{{{stop_[0], POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) return;
    std::array<char, 4096> block{};
    const auto size = ::read(STDIN_FILENO, block.data(), block.size());
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    const std::string_view typed(block.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    const auto key = typed.find_first_of(std::string{client::kDetachKey, kInterruptKey});
    if (size > 0 && key == std::string_view::npos) continue;
    if (raw_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    // Not exit(): the other thread may be in the midst of anything. A terminal that is gone is
    // left.
    std::_Exit(leave_(size > 0 ? typed[key] : client::kDetachKey));
  }
}

}  // namespace muster::cli

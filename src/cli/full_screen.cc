#include "cli/full_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace muster::cli {
namespace {

constexpr std::array<int, 4> kEnds = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array<int, 4> kCrashes = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
constexpr const char* kEnter = "\033[?1049h\033[?25l";
constexpr const char* kLeave = "\033[0m\033[?25h\033[?1049l";

// What a signal handler can reach.
struct Reach {
  int pipe = -1;
  termios before{};
  bool raw = false;
};
Reach reach;  // tidy: allow global: only a global can be seen by a signal handler

void Restore() {
  if (!reach.raw) return;
  reach.raw = false;
  [[maybe_unused]] const auto told = ::write(STDOUT_FILENO, kLeave, std::strlen(kLeave));
  ::tcsetattr(STDIN_FILENO, TCSANOW, &reach.before);
}

void Tell(int number) {
  const int saved = errno;
  const char byte = static_cast<char>(number);
  [[maybe_unused]] const auto told = ::write(reach.pipe, &byte, 1);
  errno = saved;
}

void Crash(int number) {
  Restore();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

char32_t Sequence(std::string_view body) {
  if (body == "A") return keys::kUp;
  if (body == "B") return keys::kDown;
  if (body == "H" || body == "1~" || body == "7~") return keys::kHome;
  if (body == "F" || body == "4~" || body == "8~") return keys::kEnd;
  if (body == "5~") return keys::kPageUp;
  if (body == "6~") return keys::kPageDown;
  return keys::kOther;
}

}  // namespace

std::vector<char32_t> ParseKeys(std::string_view bytes) {
  std::vector<char32_t> out;
  while (!bytes.empty()) {
    const auto first = static_cast<unsigned char>(bytes.front());
    if (first == 0x1B && bytes.size() > 1 && (bytes[1] == '[' || bytes[1] == 'O')) {
      std::size_t end = 2;
      while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
      const auto size = std::min(end + 1, bytes.size());
      out.push_back(Sequence(bytes.substr(2, size - 2)));
      bytes.remove_prefix(size);
      continue;
    }
    std::size_t size = 1;
    char32_t key = first == '\n' ? keys::kEnter : first == 8 ? keys::kBackspace : char32_t{first};
    if (first >= 0xC0) {
      size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
      key = first & (0xFFU >> (size + 1));
      for (std::size_t i = 1; i < size; ++i) {
        key = key << 6 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) & 0x3FU : 0U);
      }
    }
    out.push_back(key);
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  return out;
}

FullScreen::FullScreen() {
  if (::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  reach.pipe = pipe_[1];
  struct sigaction told {};
  told.sa_handler = Tell;
  for (const int number : kEnds) ::sigaction(number, &told, nullptr);
  ::sigaction(SIGWINCH, &told, nullptr);
  struct sigaction crashed {};
  crashed.sa_handler = Crash;
  for (const int number : kCrashes) ::sigaction(number, &crashed, nullptr);
  if (::tcgetattr(STDIN_FILENO, &reach.before) != 0) return;
  termios raw = reach.before;
  ::cfmakeraw(&raw);
  reach.raw = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  Write(kEnter);
}

FullScreen::~FullScreen() {
  Restore();
  for (const int number : kEnds) std::signal(number, SIG_DFL);
  for (const int number : kCrashes) std::signal(number, SIG_DFL);
  std::signal(SIGWINCH, SIG_DFL);
}

FullScreen::Happened FullScreen::Wait(int timeout_ms) {
  Happened out;
  std::array<pollfd, 2> polled{{{STDIN_FILENO, POLLIN, 0}, {pipe_[0], POLLIN, 0}}};
  if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return out;
  std::array<char, 256> block{};
  if (polled[1].revents != 0) {
    const auto size = ::read(pipe_[0], block.data(), block.size());
    for (ssize_t i = 0; i < size; ++i) {
      const int number = static_cast<unsigned char>(block[static_cast<std::size_t>(i)]);
      out.resized |= number == SIGWINCH;
      if (number != SIGWINCH && number != 0) out.signal = number;
    }
  }
  if (polled[0].revents != 0) {
    const auto size = ::read(STDIN_FILENO, block.data(), block.size());
    out.gone = size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
    if (size > 0) out.keys = ParseKeys({block.data(), static_cast<std::size_t>(size)});
  }
  return out;
}

void FullScreen::Wake() const {
  const char nothing = 0;
  [[maybe_unused]] const auto told = ::write(pipe_[1], &nothing, 1);
}

void FullScreen::Write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const auto done = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN) {
      pollfd ready{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&ready, 1, 1000);
      continue;
    }
    if (done <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

ScreenSize SizeNow() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

}  // namespace muster::cli

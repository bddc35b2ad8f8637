#include "shim/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "shim/kernel_files.h"

namespace muster::shim {

Result<Terminal> OpenTerminal(const contract::Window& window,
                              const std::optional<contract::User>& user) {
  Terminal terminal;
  terminal.near = Handle(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (terminal.near && unlockpt(terminal.near.get()) == 0) {
    // By the near side, not by a name: /dev/pts here may be another one.
    terminal.far = Handle(ioctl(terminal.near.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  if (!terminal.far) {
    return Fail(ErrorCode::kUnavailable, "cannot make a terminal for it: " + Why(errno));
  }
  if (user && user->uid != geteuid()) {
    // Only for programs that open it again by its name; the open side works without.
    [[maybe_unused]] const int ignored =
        fchown(terminal.far.get(), user->uid, static_cast<gid_t>(-1));
  }
  SetWindow(terminal.near.get(), window);
  return terminal;
}

void SetWindow(int near, const contract::Window& window) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(window.rows);
  size.ws_col = static_cast<unsigned short>(window.cols);
  ioctl(near, TIOCSWINSZ, &size);
}

std::optional<pid_t> Foreground(int near) {
  pid_t group = 0;
  if (ioctl(near, TIOCGPGRP, &group) != 0 || group <= 0) return std::nullopt;
  return group;
}

char EndOfInput(int near) {
  constexpr char kUsual = '\x04';
  termios state{};
  return tcgetattr(near, &state) == 0 ? static_cast<char>(state.c_cc[VEOF]) : kUsual;
}

}  // namespace muster::shim

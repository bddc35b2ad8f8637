// Keyboard: what is typed at a terminal that is joined to a worker's, while it is not.
//
// From the first Watch() or Release() on the terminal is raw, so nothing that is typed is echoed,
// and stays so until Restore(). While it is watched a thread reads it: Ctrl-] and Ctrl-C leave at
// once, whatever the program waits for; other keys are dropped, since nobody knows what will read
// them. Leaving ends this program. Does nothing where there is no terminal.
#pragma once

#include <termios.h>

#include <array>
#include <functional>
#include <thread>

namespace muster::cli {

inline constexpr char kInterruptKey = 0x03;

class Keyboard {
 public:
  // `leave` says good-bye on a terminal that is as it was, and returns the status to end with.
  Keyboard(bool terminal, std::function<int(char key)> leave);
  ~Keyboard();
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  void Watch();
  void Release();  // another one reads it
  void Restore();

 private:
  void Stop();
  void MakeRaw();
  void Read();

  bool terminal_;
  std::function<int(char)> leave_;
  termios before_{};
  bool raw_ = false;
  std::array<int, 2> stop_{-1, -1};
  std::thread reader_;
};

}  // namespace muster::cli

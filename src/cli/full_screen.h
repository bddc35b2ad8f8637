// FullScreen: the terminal for ourselves, and what is pressed there.
//
// While it lives, keys come one by one and without echo, and the other screen is shown; with its
// end, by a signal or an abort too, everything is as it was. One at a time: a signal handler can
// only reach what is global. Bytes for waking up Wait() come from any thread by Wake().
#pragma once

#include <termios.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// A character that was typed, or one of these.
namespace keys {
inline constexpr char32_t kUp = 0x110000, kDown = 0x110001, kPageUp = 0x110002,
                          kPageDown = 0x110003, kHome = 0x110004, kEnd = 0x110005, kEscape = 0x1B,
                          kEnter = '\r', kBackspace = 0x7F, kCtrlC = 3, kCtrlL = 12,
                          kOther = 0x110006;
}  // namespace keys

// What one read gave; a sequence that is not known is one kOther.
std::vector<char32_t> ParseKeys(std::string_view bytes);

class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  struct Happened {
    std::vector<char32_t> keys{};
    bool resized = false;
    int signal = 0;     // that asks us to end
    bool gone = false;  // the terminal is
  };
  Happened Wait(int timeout_ms);
  void Wake() const;
  void Write(std::string_view bytes) const;

 private:
  std::array<int, 2> pipe_{-1, -1};
};

struct ScreenSize {
  int rows = 24;
  int cols = 80;
};
ScreenSize SizeNow();

}  // namespace muster::cli

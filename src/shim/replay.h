// Replay: the last of what a terminal showed, for whoever attaches to it later.
//
// Bounded, and taken with the first byte: most workers have no terminal. What is told begins with a
// line where the beginning was overwritten, so that no half of an escape sequence is shown, and
// holds no question that the terminal would answer again. Costs one copy per byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::shim {

class Replay {
 public:
  explicit Replay(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void Keep(std::string_view bytes);
  std::string Text() const;

 private:
  std::size_t most_bytes_;
  std::string ring_;
  std::size_t next_ = 0;  // where the next byte goes once the ring is full; the oldest is there
  bool cut_ = false;
};

}  // namespace muster::shim

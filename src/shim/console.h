// Console: what somebody at a screen does to one process: type, resize, interrupt.
//
// Never waits: what the process does not read yet is kept, and full() says when whoever types must
// wait. With a terminal a signal goes where Ctrl-C would, to the foreground process group; without,
// to the process group of the process.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "contract/frames.h"
#include "shim/spawn.h"

namespace muster::shim {

class Console {
 public:
  // `process` must outlive this.
  explicit Console(Worker& process) : process_(process) {}

  bool has_terminal() const { return static_cast<bool>(process_.far); }

  void Type(std::string_view bytes);
  void EndInput();
  bool full() const;

  void AddTo(std::vector<pollfd>& polled) const;  // nothing unless something waits
  void Push();                                    // what waits, as far as it is taken

  void Resize(const contract::Window& window) const;
  void Signal(int number) const;  // must not have been waited for

 private:
  // A terminal is one descriptor both ways.
  Handle& input() const { return has_terminal() ? process_.out : process_.input; }

  Worker& process_;
  std::string typed_;
  bool ends_ = false;
};

}  // namespace muster::shim

// Terminal: a pseudo-terminal for one process, and what is done to it from outside.
//
// The shim keeps the far side open too. Otherwise a process that closes its streams for a while
// would look like the end of all output, and reading would fail for as long as nobody has it open;
// so the end is known from the process alone. Closing both sides hangs it up: the kernel sends
// SIGHUP to the session's leader and to the foreground.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/result.h"
#include "contract/frames.h"
#include "contract/order.h"
#include "shim/handle.h"

namespace muster::shim {

struct Terminal {
  Handle near;  // of the shim; does not block
  Handle far;   // of the process
};

// The far side belongs to the user, as that of a login does.
Result<Terminal> OpenTerminal(const contract::Window& window,
                              const std::optional<contract::User>& user);

void SetWindow(int near, const contract::Window& window);  // the foreground gets SIGWINCH

// The process group that Ctrl-C would reach.
std::optional<pid_t> Foreground(int near);

char EndOfInput(int near);  // what Ctrl-D types

}  // namespace muster::shim

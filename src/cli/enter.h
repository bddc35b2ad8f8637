// Enter: a worker's terminal on this one.
//
// Every key goes to the program but Ctrl-], which leaves it running; so does the end of our input.
// Attach() ends with the program's own status, 128 and the signal where one ended it, or 0 when it
// was left. Attend() is what `run` does: it ends as `muster wait` does, and shows everything the
// program printed even where it ended before anybody could be attached. While the daemon is away
// Ctrl-] and Ctrl-C leave, and other keys are dropped.
#pragma once

#include <cstdint>
#include <string>

#include "cli/session.h"

namespace muster::cli {

int Attach(Session& session, const std::string& job, std::int64_t worker);

enum class Joined : std::uint8_t { kTerminal, kOutput };
// Says on one line what it waits for, where standard error is a terminal.
int Attend(Session& session, const std::string& job, Joined how);

// Keyboard's `leave` for it: says that the job goes on and how to come back.
int LeaveAway(const std::string& job, char key);

// Both ends of it: one that is joined to a worker's needs both.
bool AtTerminal();

// 127.0.0.1 here to a port of the worker, until the job ends. `ports`: "8888", "9000:8888", or
// empty for the job's notebook.
int PortForward(Session& session, const std::string& job, std::int64_t worker,
                const std::string& ports);

}  // namespace muster::cli

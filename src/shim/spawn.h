// Spawn: makes the worker's process, with its user, folder, limits, streams and environment.
//
// Returns when the process exists; whether its program could be run comes through `verdict` (the
// end of the file: it runs; a Fault: it does not), so that a slow file system does not keep the
// shim from listening. Without a cgroup memory is bounded by RLIMIT_DATA, per process: RLIMIT_AS
// would count the address space that CUDA reserves and never touches, RLIMIT_RSS does nothing.
// Processor time and number of processes then go unlimited: affinity to cores nobody chose would
// pile workers up, and RLIMIT_NPROC counts all processes of the user.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "contract/order.h"
#include "shim/handle.h"

namespace muster::shim {

struct Worker {
  pid_t pid = 0;
  Handle input;  // only of a process beside the worker, and not with a terminal
  Handle out;    // with a terminal its near side: what is printed, and what is typed
  Handle err;    // not with a terminal
  Handle far;    // of the terminal
  Handle verdict;
};

struct Fault {
  enum class Step : int { kCgroup, kLimits, kCores, kTerminal, kUser, kFolder, kProgram };
  Step step = Step::kProgram;
  int reason = 0;
};

inline constexpr const char* kUsualTerm = "xterm-256color";

enum class Part {
  kWorker,  // reads nothing; tried again for some seconds when the machine has no room for it
  kBeside,  // has an input; tried once, because the worker's output would have to wait
};

// `doors`: see Cgroup.
Result<Worker> Spawn(const contract::LaunchOrder& order, const std::vector<Handle>& doors,
                     bool use_rlimits, Part part = Part::kWorker);

std::string Explain(const Fault& fault, const contract::LaunchOrder& order);
int ExitCode(const Fault& fault);  // as shells do: 127 no such program, 126 cannot be run

}  // namespace muster::shim

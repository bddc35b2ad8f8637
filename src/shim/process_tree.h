// Process tree: everybody who descends from this process.
//
// The shim is a subreaper, so a process that was detached on purpose still ends up below it: no
// descendant can get away but by a service outside. A listing is old when it is returned, so
// whoever wants none left must ask again until wait() says that there are no children. Costs a few
// system calls per process; where the kernel keeps no lists of children, one scan of all of /proc.
#pragma once

#include <sys/types.h>

#include <vector>

namespace muster::shim {

std::vector<pid_t> Descendants(pid_t root);

// The same from the parents that all processes name; for kernels without lists of children.
std::vector<pid_t> DescendantsByScan(pid_t root);

bool Ignores(pid_t pid, int signal);

void SignalEach(const std::vector<pid_t>& pids, int signal);

}  // namespace muster::shim

// Leftovers: what is still there of a launch whose shim has died.
//
// The worker itself dies with its shim; what it had started may live on. Every process of a launch
// carries the launch's name in its environment (kLaunchVariable), so they are found without a
// cgroup too. Costs one look at every process of the machine, and is only done when a shim was
// lost.
#pragma once

#include <string>

namespace muster::pools {

inline constexpr const char* kLaunchVariable = "MUSTER_LAUNCH";

// Kills them and returns how many there were.
int KillLeftovers(const std::string& launch);

// CPU time in milliseconds of a process and everything below it; -1: it is not there.
long long CpuMsOfTree(int pid);

// Whether a process of the worker, or one that it left to its shim, listens on that TCP port.
bool TreeListensOn(int worker, int port);

}  // namespace muster::pools

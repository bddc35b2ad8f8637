// Leftovers: what is still there of a launch whose shim has died.
//
// The worker itself dies with its shim; what it had started may live on. Every process of a launch
// carries the launch's name in its environment (kLaunchVariable), so they are found without a
// cgroup too. Costs one look at every process of the machine, and is only done when a shim was
// lost.
#pragma once

#include <set>
#include <string>

namespace muster::pools {

inline constexpr const char* kLaunchVariable = "MUSTER_LAUNCH";

// Kills them and returns how many there were.
int KillLeftovers(const std::string& launch);

// A worker and everything below it, or below its shim, which takes in what the worker has left.
std::set<int> ProcessesOf(int worker);

// Processor time in milliseconds that a worker has used so far: its cgroup's where it has one of
// its own, else that of its processes and of those that they waited for. -1: it is not there.
long long CpuMsOf(int worker, const std::string& launch);

// Whether a process of the worker, or one that it left to its shim, takes connections to that TCP
// port of 127.0.0.1 (::1 with `v6`). One that listens on another address of the machine does not,
// and whoever has the loopback address itself goes before one that listens on all.
bool TreeListensOn(int worker, int port, bool v6);

}  // namespace muster::pools

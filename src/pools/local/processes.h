// Processes: what a worker's processes use and listen on, as /proc tells it.
//
// A worker is it and everything below it, or below its shim, which takes in what the worker has
// left. How deep or wide a job makes its tree is its own business: it is walked with a list. Costs
// a few reads for each process.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace muster::pools {

std::set<int> ProcessesOf(int worker);

// Processor time in milliseconds that a worker has used so far: its cgroup's where it has one of
// its own, else that of its processes and of those that they waited for. -1: it is not there.
std::int64_t CpuMsOf(int worker, const std::string& launch);

// Whether a process of the worker takes connections to that TCP port of 127.0.0.1 (::1 with `v6`).
// One that listens on another address of the machine does not, and whoever has the loopback address
// itself goes before one that listens on all.
bool TreeListensOn(int worker, int port, bool v6);

}  // namespace muster::pools

// Leftovers: what is still there of a launch whose shim has died.
//
// The worker itself dies with its shim; what it had started may live on. Every process of a launch
// carries the folder of the launch in its environment (kLaunchVariable), which no other launch of
// this or another daemon has, so they are found without a cgroup too. Costs one look at every
// process of the machine, and is only done when a shim was lost.
#pragma once

#include <string>

namespace muster::pools {

inline constexpr const char* kLaunchVariable = "MUSTER_LAUNCH";

// Kills them and returns how many there were.
int KillLeftovers(const std::string& run_dir);

}  // namespace muster::pools

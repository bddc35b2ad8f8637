// Doors: the three sockets in the worker's run folder.
//
// `ctl` takes datagrams of the daemon (0600), `door` its connections for those who attach (0600),
// `worker.sock` the worker's connections (0600, its user). Bound by their bare names from inside
// the folder, because a socket's path has 108 bytes and a run folder's may be longer; so the shim
// lives in its run folder.
#pragma once

#include <string>

#include "base/result.h"
#include "contract/order.h"
#include "shim/handle.h"

namespace muster::shim {

inline constexpr const char* kCtl = "ctl";
inline constexpr const char* kBegun = "begun";

struct Doors {
  Handle ctl;
  Handle worker;
  Handle door;
};

// Assumes that the current folder is the run folder.
Result<Doors> OpenDoors(const contract::LaunchOrder& order);
void CloseDoors(Doors& doors);

// The mark that says: from here on there may be a worker. kConflict when it is there already.
Result<void> MarkBegun();

}  // namespace muster::shim

// Reconnect: what a verb that follows something does while the daemon does not answer.
//
// It asks again for a minute, or for the seconds in $MUSTER_RECONNECT (0: not at all), so that a
// restart or an upgrade of the daemon ends no `wait`, no `logs -f` and no `--watch`. One line says
// so: on a terminal it counts down and goes away by itself, elsewhere it is written once. Clients
// on several threads may share one Patience.
#pragma once

#include "client/client.h"

namespace muster::cli {

client::Patience Reconnecting();

}  // namespace muster::cli

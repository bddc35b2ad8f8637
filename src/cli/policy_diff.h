// PolicyDiff: `muster policy diff`: what another policy would have changed.
//
// What really happened is replayed by the daemon, as a simulation of its API; a trace, and a past
// that was saved, are played here, without a daemon. All give the same document, from which the
// table and the page come.
#pragma once

#include "cli/verbs.h"

namespace muster::cli {

void AddPolicyDiff(Verbs& verbs, CLI::App* policy);

}  // namespace muster::cli

// Rebuilt: whether the state that grew event by event is the one that the facts alone give.
//
// Compares the canonical dumps, the lists and sums that the dump leaves out, and for every shape
// how many workers fit in each mode and where the next one would go, which is where a missed update
// of an index would show.
#pragma once

#include <string>

#include "world.h"

namespace muster::properties {

// What differs between the cluster and one built from the facts, or nothing.
std::string DiffersFromRebuilt(World& world);

}  // namespace muster::properties

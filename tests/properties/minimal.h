// Minimal: whether a victim could have stayed where it was.
//
// Works on a cluster that is built anew from the facts before the cycle, in which all victims but
// one unit have left; then everybody whom the plan started or promised something must find a place
// again. Judges plans in which one claimer asked others to leave for one piece, because minimality
// is promised for the victims of one search, not across searches.
#pragma once

#include <string>

#include "world.h"

namespace muster::properties {

// The unit that could have stayed, or nothing. `before` are the facts right before the cycle.
std::string DroppableVictim(const Facts& before, const World& after, const model::Plan& plan);

// Whether the plan is one that DroppableVictim judges.
bool IsOneClaim(const model::Plan& plan);

}  // namespace muster::properties

// Speeds that the jobs of a world report, and how long they are expected to run.
//
// Both follow from the job's name: it says the same whenever it reports, so that a world which has
// come to rest stays there.
#pragma once

#include "engine/policy.h"
#include "world.h"

namespace muster::properties {

// Sizes are given out in every cycle in which something is new, and nobody takes turns.
engine::Policy Eager(engine::Policy policy);

// Three jobs of four report: on one type, the other, or both, how fast they are.
void ReportSpeeds(World& world);

// Not known, over at once, a minute, or a month: it has nothing to do with how long they run.
void GuessRunTimes(World& world);

}  // namespace muster::properties

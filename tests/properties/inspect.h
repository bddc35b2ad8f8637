// Inspect: what must hold after every cycle, recomputed from the workers' places alone.
//
// Each check returns what is wrong, or nothing. None of them reads the counters of the engine
// (occupancy, held amounts, group states): they add up what the model says each worker takes at
// the place where it is. Costs a pass over all workers; meant for small clusters.
#pragma once

#include <string>

#include "model/plan.h"
#include "world.h"

namespace muster::properties {

// A device taken twice, shared and whole at once, or by two members of one job; a node with more
// cores, memory or workers in use than it has.
std::string Oversubscribed(const World& world);

// A worker started on a node that takes none, on a wrong GPU type, or outside its required domain.
std::string Misplaced(const World& world, const model::Plan& plan);

// A job that got workers and is still below its minimum.
std::string BrokenGang(const World& world, const model::Plan& plan);

// A queue above its limit in something that the plan gave it.
std::string AboveLimit(const World& world, const model::Plan& plan);

// A queue in which work that is not preemptible was started beyond a quota on its path.
std::string AboveFixedQuota(const World& world, const model::Plan& plan);

// Work that is not preemptible and was stopped by anything but its own failure.
std::string ForbiddenEviction(const World& world, const model::Plan& plan);

// A job preempted for one of another queue, or reclaimed for one of its own.
std::string TakenFromTheWrongQueue(const World& world, const model::Plan& plan);

}  // namespace muster::properties

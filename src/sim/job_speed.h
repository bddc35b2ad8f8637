// JobSpeed: what a job has told of its speed, as the engine's model of it.
//
// The view hands it to the engine, and whoever plays jobs in time asks it how fast one would be.
#pragma once

#include "engine/goodput.h"
#include "state/records.h"

namespace muster::sim {

// The model that fits what the job has told.
engine::JobSpeed SpeedOf(const state::SpeedRecord& record);

}  // namespace muster::sim
